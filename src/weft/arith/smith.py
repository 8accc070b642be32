"""Diagonal form of an integer matrix under unimodular row and column operations.

``left * matrix * basis`` is diagonal, and ``inverse`` is the inverse of ``basis``; all are integer
matrices. ``int_solver`` reads the integer solutions of linear equations off it. (In Smith's normal
form each diagonal entry divides the next one; solving does not need that.)
"""

from __future__ import annotations

Matrix = list[list[int]]


def extended_gcd(a: int, b: int) -> tuple[int, int, int]:
    """(g, s, t) with g = gcd(a, b) > 0 and g = s * a + t * b."""
    (g, s, t), (rest, next_s, next_t) = (a, 1, 0), (b, 0, 1)
    while rest:
        times = g // rest
        g, rest = rest, g - times * rest
        s, next_s = next_s, s - times * next_s
        t, next_t = next_t, t - times * next_t
    return (g, s, t) if g > 0 else (-g, -s, -t)


def identity(size: int) -> Matrix:
    """The unit matrix."""
    return [[int(row == column) for column in range(size)] for row in range(size)]


class Diagonalized:
    """The diagonal form of ``matrix`` with ``columns`` columns; see the module's docstring."""

    def __init__(self, matrix: Matrix, columns: int) -> None:
        self.matrix = [list(row) for row in matrix]
        self.left = identity(len(matrix))
        self.basis = identity(columns)
        self.inverse = identity(columns)
        for index in range(min(len(matrix), columns)):
            while self._clear(index):
                pass

    def entry(self, index: int) -> int:
        """The diagonal entry; 0 outside of the matrix."""
        if index >= len(self.matrix) or index >= len(self.basis):
            return 0
        return self.matrix[index][index]

    def _clear(self, index: int) -> bool:
        """Clear the row and column of a diagonal entry; True if that must be repeated."""
        self._choose_pivot(index)
        if self.matrix[index][index] == 0:
            return False
        for row in range(index + 1, len(self.matrix)):
            if self.matrix[row][index]:
                self._combine_rows(index, row)
        again = False
        for column in range(index + 1, len(self.basis)):
            if self.matrix[index][column]:
                again = self._combine_columns(index, column) or again
        return again

    def _choose_pivot(self, index: int) -> None:
        """Bring the smallest nonzero entry of the column (else of the row) to the diagonal."""
        rows = [row for row in range(index, len(self.matrix)) if self.matrix[row][index]]
        if rows:
            best = min(rows, key=lambda row: abs(self.matrix[row][index]))
            for table in (self.matrix, self.left):
                table[index], table[best] = table[best], table[index]
            return
        for column in range(index + 1, len(self.basis)):
            if self.matrix[index][column]:
                for table in (self.matrix, self.basis):
                    for row in table:
                        row[index], row[column] = row[column], row[index]
                rows_of = self.inverse
                rows_of[index], rows_of[column] = rows_of[column], rows_of[index]
                return

    def _factors(self, pivot: int, other: int) -> tuple[int, int, int, int]:
        """(s, t, other/g, pivot/g); a pivot that divides the other entry stays (s=1, t=0)."""
        if other % pivot == 0:
            return 1, 0, other // pivot, 1
        g, s, t = extended_gcd(pivot, other)
        return s, t, other // g, pivot // g

    def _combine_rows(self, index: int, row: int) -> None:
        """Make the entry of ``row`` below the diagonal 0."""
        pivot, other = self.matrix[index][index], self.matrix[row][index]
        s, t, n, m = self._factors(pivot, other)
        for table in (self.matrix, self.left):
            upper, lower = table[index], table[row]
            table[index] = [s * a + t * b for a, b in zip(upper, lower, strict=True)]
            table[row] = [n * a - m * b for a, b in zip(upper, lower, strict=True)]

    def _combine_columns(self, index: int, column: int) -> bool:
        """Make the entry right of the diagonal 0; True if the pivot's column changed."""
        pivot, other = self.matrix[index][index], self.matrix[index][column]
        s, t, n, m = self._factors(pivot, other)
        for table in (self.matrix, self.basis):
            for row in table:
                a, b = row[index], row[column]
                row[index], row[column] = s * a + t * b, n * a - m * b
        upper, lower = self.inverse[index], self.inverse[column]
        self.inverse[index] = [m * a + n * b for a, b in zip(upper, lower, strict=True)]
        self.inverse[column] = [t * a - s * b for a, b in zip(upper, lower, strict=True)]
        return t != 0
