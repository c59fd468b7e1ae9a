/**
 * The solution of a system of linear equations by Gaussian elimination with partial pivoting in fp64.
 * @param rows one equation each: the coefficients, then the right-hand side; as many as unknowns
 * @throws Error when the system is singular
 */
export function solveLinear(rows: readonly (readonly number[])[]): number[] {
  const size = rows.length;
  const work = rows.map((row) => [...row]);
  for (let column = 0; column < size; column++) {
    let pivot = column;
    for (let row = column + 1; row < size; row++)
      if (Math.abs(work[row][column]) > Math.abs(work[pivot][column])) pivot = row;
    if (work[pivot][column] === 0) throw new Error('the linear system is singular');
    [work[column], work[pivot]] = [work[pivot], work[column]];
    for (let row = column + 1; row < size; row++) {
      const factor = work[row][column] / work[column][column];
      for (let k = column; k <= size; k++) work[row][k] -= factor * work[column][k];
    }
  }
  const solution = new Array<number>(size).fill(0);
  for (let row = size - 1; row >= 0; row--) {
    let rest = work[row][size];
    for (let k = row + 1; k < size; k++) rest -= work[row][k] * solution[k];
    solution[row] = rest / work[row][row];
  }
  return solution;
}
