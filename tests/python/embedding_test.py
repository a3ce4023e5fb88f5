"""Rows of a table and the table's gradient, on the CPU and on a GPU where there is one, against sums in double."""
import sys
import unittest

import torch

torch.ops.load_library(sys.argv.pop(1))
rows_of = torch.ops.cosformer._embedding_fwd
gradient_of = torch.ops.cosformer._embedding_bwd

DEVICES = ["cpu"] + (["cuda"] if torch.cuda.is_available() else [])
WIDTH = 64


def cases(device):
    """Ids of a batch: drawn, ascending places with padding behind them, and one row alone; tables small and large."""
    torch.manual_seed(0)
    images, tokens = (256, 619) if device == "cuda" else (8, 150)
    for rows in (256, 1024, 40_000):
        drawn = torch.randint(rows, (images, tokens), device=device)
        places = drawn.sort(1)[0]
        places[:, tokens // 2:] = 0
        for ids in (drawn, places, torch.full_like(drawn, 7)):
            yield rows, ids, torch.randn(images, tokens, WIDTH, device=device)


def sums(values, ids, rows):
    table = torch.zeros(rows, WIDTH, dtype=torch.double, device=values.device)
    return table.index_add_(0, ids.flatten(), values.double().flatten(0, 1))


class Embedding(unittest.TestCase):
    def test_rows(self):
        for device in DEVICES:
            for rows, ids, x in cases(device):
                table = torch.randn(rows, WIDTH, device=device)
                self.assertTrue(torch.equal(rows_of(table, ids, None), table[ids]))
                self.assertTrue(torch.equal(rows_of(table, ids, x), x + table[ids]))

    def test_gradient(self):
        for device in DEVICES:
            for rows, ids, dy in cases(device):
                gradient = gradient_of(dy, ids, rows)
                error = (gradient.double() - sums(dy, ids, rows)).abs() / (sums(dy.abs(), ids, rows) + 1e-30)
                self.assertLess(error.max().item(), 1e-6)
                self.assertTrue(torch.equal(gradient, gradient_of(dy, ids, rows)))

    @unittest.skipUnless(torch.cuda.is_available(), "needs a GPU")
    def test_captured(self):
        for rows, ids, dy in cases("cuda"):
            gradient_of(dy, ids, rows)  # what is made at the first call cannot be captured
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                captured = gradient_of(dy, ids, rows)
            graph.replay()
            self.assertTrue(torch.equal(captured, gradient_of(dy, ids, rows)))

    def test_layouts_and_types(self):
        """int32 ids, a single one, rows that begin anywhere, odd widths, gradients that repeat, low precision."""
        for device in DEVICES:
            torch.manual_seed(1)
            for width, dtype in ((1, torch.float32), (7, torch.float32), (24, torch.bfloat16), (9, torch.bfloat16)):
                table = torch.randn(31, width, device=device, dtype=dtype)[1:]
                several = torch.randint(30, (5, 11), device=device, dtype=torch.int32)
                for ids in (several, torch.tensor(3, device=device)):
                    x = torch.randn(*ids.shape, width, device=device, dtype=dtype)
                    self.assertTrue(torch.equal(rows_of(table, ids, x), x + table[ids.long()]))
                    dy = torch.ones(width, device=device, dtype=dtype).expand(*ids.shape, width)
                    counts = torch.bincount(ids.flatten().long(), minlength=30)
                    self.assertTrue(torch.equal(gradient_of(dy, ids, 30), counts[:, None].expand(30, width).to(dtype)))

    @unittest.skipUnless(torch.cuda.is_available(), "needs a GPU")
    def test_ids_outside_the_table(self):
        ids = torch.tensor([-1, 0, 5, 2, 2**16 + 1, 2**32 + 1, -2**16], device="cuda")
        outside = [True, False, True, False, True, True, True]
        rows = rows_of(torch.ones(5, WIDTH, device="cuda"), ids, None)
        self.assertEqual(rows.isnan().all(1).tolist(), outside)
        gradient = gradient_of(torch.ones(len(ids), WIDTH, device="cuda"), ids, 5)
        self.assertEqual(gradient.sum(1).tolist(), [WIDTH, 0, WIDTH, 0, 0])

    @unittest.skipUnless(torch.cuda.is_available(), "needs a GPU")
    def test_what_is_refused(self):
        table, ids = torch.ones(5, WIDTH, device="cuda"), torch.tensor([1, 2], device="cuda")
        for wrong in (lambda: rows_of(table, ids.cpu(), None), lambda: rows_of(table, ids.float(), None),
                      lambda: rows_of(table, ids, table), lambda: gradient_of(table[:2], ids.cpu(), 5)):
            with self.assertRaisesRegex(RuntimeError, "cosformer: "):
                wrong()


if __name__ == "__main__":
    unittest.main()
