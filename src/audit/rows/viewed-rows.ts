/** The rows of a memory that is read in an order of axes which it does not have. */
export interface ViewedRows {
  /** The row that stands where a row is read, both flat over [batch, heads, rows]. */
  readonly from: (flat: number) => number;
  /** The place at which a row is read: the reverse of `from`. */
  readonly to: (flat: number) => number;
}

/** The rows of a memory [batch, rows, heads] that is read as [batch, heads, rows], and those of the reverse. */
export function viewedRows(heads: number, rows: number): readonly [ViewedRows, ViewedRows] {
  const size = heads * rows;
  const within = (move: (at: number) => number) => (flat: number) =>
    flat - (flat % size) + move(flat % size);
  const rowsFirst = within((at) => (at % heads) * rows + Math.floor(at / heads));
  const headsFirst = within((at) => (at % rows) * heads + Math.floor(at / rows));
  return [
    { from: rowsFirst, to: headsFirst },
    { from: headsFirst, to: rowsFirst },
  ];
}
