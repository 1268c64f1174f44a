"""The answer of a command that stands above the rooms of this package."""

from raysim.config.answering import Answer as Answer
from raysim.config.answering import answered as answered
