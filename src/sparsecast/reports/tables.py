"""Texts of numbers, for pages and figures."""

from sparsecast.system.texts import energy as energy
from sparsecast.system.texts import energy_interval as energy_interval
from sparsecast.system.texts import interval as interval
from sparsecast.system.texts import size as size
from sparsecast.system.texts import time as time
