import type { RunResult } from '../../../jobs/index.js';
import { formatGrouped, formatShare } from '../../../words/index.js';
import { alignColumns } from '../../layout/index.js';

/** Number of places of waits that are shown. */
const mostWaits = 6;

const sum = (amounts: Readonly<Record<string, number>>) =>
  Object.values(amounts).reduce((all, one) => all + one, 0);

/** Amounts by name, the largest first. */
const rowsOf = (amounts: Readonly<Record<string, number>>, most = Infinity) =>
  Object.entries(amounts)
    .sort(([, a], [, b]) => b - a)
    .slice(0, most)
    .map(([name, amount]) => [name, formatGrouped(amount)]);

function table(title: string, rows: readonly (readonly string[])[]): readonly string[] {
  return rows.length === 0 ? [] : [title, ...alignColumns(rows), ''];
}

/** The work of the units of an SM, and the time that it takes them at full rate. */
function rooflineLines({ run }: RunResult): readonly string[] {
  const { lines, unratedFlops } = run.work;
  const most = lines.reduce((clocks, one) => Math.max(clocks, one.clocks), 0);
  const rows = lines.map(({ unit, amount, measure, clocks }) => [
    unit,
    `${formatGrouped(amount)} ${measure}`,
    `${formatGrouped(Math.ceil(clocks))} clocks`,
    formatShare(clocks / most),
  ]);
  const rest =
    unratedFlops === 0 ? [] : [['MMAs without a rate', `${formatGrouped(unratedFlops)} FLOP`]];
  return table(`Roofline, ${run.architecture}: clocks of one SM, in % of the busiest unit's`, [
    ...rows,
    ...rest,
  ]);
}

/** A run's counts of units, memories and waits. */
export function workLines(result: RunResult): readonly string[] {
  const { counters } = result.run;
  const { waits, blockedWaits, instructions } = counters;
  const parted = instructions.diverge ?? 0;
  return [
    ...rooflineLines(result),
    ...table('Bytes of global memory', rowsOf(counters.globalBytes)),
    ...table('Bytes of shared memory', rowsOf(counters.sharedBytes)),
    ...table('Bytes of tensor memory', rowsOf(counters.tensorBytes)),
    ...(sum(waits) === 0
      ? []
      : table(
          `Waits of warps: ${formatGrouped(sum(waits))}, of which ${formatGrouped(sum(blockedWaits))} had to wait; most often at`,
          rowsOf(blockedWaits, mostWaits),
        )),
    ...(parted === 0 ? [] : [`Lanes of a warp parted ${formatGrouped(parted)} times`, '']),
  ];
}
