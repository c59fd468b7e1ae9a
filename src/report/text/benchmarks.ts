import { formatQuantity, formatScaled } from '../../words/index.js';
import { layoutColumns } from '../layout/index.js';
import type { BenchmarkResults, Machine, Reading } from '../../bench/index.js';

function targetText({ target, better, unit, meetsTarget }: Reading): string {
  if (target === undefined) return '';
  const bound = `${better === 'higher' ? '≥' : '≤'} ${formatQuantity(target, unit)}`;
  if (meetsTarget === null) return bound;
  return `${bound} ${meetsTarget ? 'met' : 'MISSED'}`;
}

function row(reading: Reading): readonly string[] {
  const { name, unit, median, smallest, largest } = reading;
  const range = `${formatScaled(smallest)} to ${formatScaled(largest)}`;
  return [name, formatQuantity(median, unit), range, targetText(reading)];
}

function machineText({ cpu, cores, memoryBytes, node, platform, load }: Machine): string {
  const memory = `${(memoryBytes / 2 ** 30).toFixed(1)} GiB`;
  return `${cpu}, ${cores} cores, ${memory}, Node ${node}, ${platform}, load ${load.toFixed(2)} before`;
}

/** The readings as a table, under the machine that they hold for. */
export function renderBenchmarks({ quick, machine, readings }: BenchmarkResults): string {
  const rows = [['benchmark', 'median', 'range', 'target'], ...readings.map(row)];
  const lines = layoutColumns(rows, () => 'left').map((line) => line.trimEnd());
  const warning = quick ? ['quick: small data and single runs; the numbers mean little', ''] : [];
  return [machineText(machine), '', ...warning, ...lines, ''].join('\n');
}
