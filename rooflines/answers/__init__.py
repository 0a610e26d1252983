"""Answers: a question in words, its values, phrases and screen."""
