"""The version, where every package can read it."""

VERSION = "0.1.0"
