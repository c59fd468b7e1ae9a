import type { HeadOperands } from './head-operands.js';
import { operandRow, tileRows } from './operand.js';
import type { Row } from './row.js';
import type { Rules } from './rules.js';

/** What `fill` writes for the places of the keys, ascending, each tile of 64 once, into `target`. */
function gather<T extends Float64Array | Uint8Array>(
  keys: Int32Array,
  target: T,
  tile: T,
  fill: (firstKey: number, tile: T) => void,
): T {
  let firstKey = -1;
  keys.forEach((key, j) => {
    const first = key - (key % tileRows);
    if (first !== firstKey) fill(first, tile);
    firstKey = first;
    target[j] = tile[key - first];
  });
  return target;
}

/**
 * A row with some of the keys that it sees, for the slower levels.
 * @param infinite per key, as `Row` has it
 */
export function visibleRow(
  { head, query, keys, values }: HeadOperands,
  row: number,
  rules: Rules,
  visible: Int32Array,
  infinite: Int8Array,
): Row {
  const { law, kept } = rules;
  const { addend } = law;
  return {
    query: operandRow(query, row).slice(),
    queryNorm: query.norm[row],
    keys,
    values,
    visible,
    infinite,
    addends:
      addend === null
        ? null
        : gather(
            visible,
            new Float64Array(visible.length),
            new Float64Array(tileRows),
            (first, tile) => addend(head, row, first, tile),
          ),
    kept:
      kept === null
        ? null
        : gather(visible, new Uint8Array(visible.length), new Uint8Array(tileRows), (first, tile) =>
            kept.fill(head, row, first, tile),
          ),
    sink: rules.sinkOf(head),
    share: kept?.share ?? 1,
  };
}
