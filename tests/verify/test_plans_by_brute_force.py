"""A search of training plans finds what a table of every plan has first: 1,000 random questions."""

from random import Random

from plan_questions import differences, random_question

QUESTIONS = 1000


def test_a_search_equals_brute_force_on_a_thousand_questions():
    rng, wrong, asked = Random(55), [], 0
    while asked < QUESTIONS:
        question = random_question(rng, chips=(1, 2, 2, 4), each=(1, 2))
        found = differences(question)
        asked += found is not None
        wrong += [(question, found)] if found else []
    assert not wrong
