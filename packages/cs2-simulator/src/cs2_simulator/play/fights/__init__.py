"""Fights: weapons, money, damage, and how one round is played."""
