/** An output of a launch that is a quantity of its problem. */
export interface ContractOutput {
  /** The quantity: `out`, `lse`, `dq`, … */
  readonly name: string;
  /** The launch's tensor. */
  readonly tensor: string;
  /** Its sizes: batch, heads, rows, columns. */
  readonly shape: readonly [number, number, number, number];
  /**
   * The element of the flat tensor for a row of the problem, where packed sequences are one behind the other in batch 0, and
   * a column, which is 0 for a quantity of one number a row.
   */
  readonly elementOf: (batch: number, head: number, row: number, column: number) => number;
}
