"""How is one match driven, from its creation to the release of its server? One step a phase, each safe to repeat."""
