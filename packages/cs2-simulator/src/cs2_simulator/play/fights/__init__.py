"""Simulate fights: weapons, money, damage, and the course of a round."""
