import type { Reading } from '../../bench/index.js';
import type { BenchmarkResults } from '../../bench/index.js';
import type { Machine } from '../../bench/index.js';

const prefixes: readonly (readonly [factor: number, prefix: string])[] = [
  [1e9, 'G'],
  [1e6, 'M'],
  [1e3, 'k'],
  [1, ''],
  [1e-3, 'm'],
  [1e-6, 'µ'],
];

const significantDigits = 3;

/** A positive number with three significant digits and an SI prefix: `2.81 G`. */
export function formatScaled(value: number): string {
  const rounded = Number(value.toPrecision(significantDigits));
  const [factor, prefix] = prefixes.find(([f]) => rounded >= f) ?? prefixes[prefixes.length - 1];
  return `${(rounded / factor).toPrecision(significantDigits)} ${prefix}`.trim();
}

/** The same with its unit: `2.81 G elements/s`, `98.5 ms`. */
export function formatQuantity(value: number, unit: string): string {
  const symbol = unit.replace(/^bytes/, 'B');
  const scaled = formatScaled(value);
  const joined = symbol.length <= 3 && /[a-zµ]$/i.test(scaled);
  return joined ? `${scaled}${symbol}` : `${scaled} ${symbol}`;
}

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

/** The readings as a table, under the machine they hold for. */
export function renderBenchmarks({ quick, machine, readings }: BenchmarkResults): string {
  const rows = [['benchmark', 'median', 'range', 'target'], ...readings.map(row)];
  const widths = rows[0].map((_, c) => Math.max(...rows.map((cells) => cells[c].length)));
  const lines = rows.map((cells) =>
    cells
      .map((cell, c) => cell.padEnd(widths[c]))
      .join('  ')
      .trimEnd(),
  );
  const warning = quick ? ['quick: small data and single runs; the numbers mean little', ''] : [];
  return [machineText(machine), '', ...warning, ...lines, ''].join('\n');
}
