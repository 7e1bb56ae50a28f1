"""Devices that run PTX: what they offer (`driver`), and one that exists on every machine (`emulator`)."""
