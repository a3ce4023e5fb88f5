"""How many rows of a table of texts stand word for word within another row: what a held-out part then gives away.

    python3 bench/phrases_within.py TRAIN.tsv [OTHER.tsv]     a header with a column "sentence"; OTHER's rows in TRAIN's
"""
import csv
import sys


def rows_of(path):
    with open(path, encoding="utf-8", newline="") as file:
        return [tuple(row["sentence"].split()) for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)]


train = rows_of(sys.argv[1])
asked = rows_of(sys.argv[2]) if len(sys.argv) > 2 else train
wanted, others = set(asked), {}  # others: in how many rows each wanted phrase stands
for words in train:
    pieces = {words[a:b] for a in range(len(words)) for b in range(a + 1, len(words) + 1)}
    for piece in pieces & wanted:
        others[piece] = others.get(piece, 0) + 1
own = 1 if len(sys.argv) == 2 else 0
within = sum(others.get(words, 0) > own for words in asked)
print(f"{within} of {len(asked)} rows ({100 * within / len(asked):.1f}%) stand within {'another' if own else 'a'} row")
