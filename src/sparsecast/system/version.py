"""The version, below all packages."""

VERSION = "0.1.0"
