import { alignTextColumns, joinLargest, sparkline } from '../../layout/index.js';
import type { Plot, Profile } from '../../../profile/index.js';

/** Columns of a sparkline: with names and numbers it stays within 80 columns. */
const columns = 40;

/** Names longer than this are cut, so that the lines stay within 80 columns. */
const longestName = 24;

/** The largest |error| of each column of a plot's envelope; null where there is no error. */
function largestErrors({ least, most }: Plot['curves'][number]['envelope']): (number | null)[] {
  return Array.from(most, (high, i) =>
    least[i] > high ? null : Math.max(Math.abs(high), Math.abs(least[i])),
  );
}

function edge(value: number, scale: 'linear' | 'log2'): string {
  return scale === 'log2' ? `2^${Math.log2(value)}` : String(Number(value.toPrecision(6)));
}

function plotLines({ panel, quantity, curves }: Plot): string[] {
  const rows = curves.map(({ name, envelope }) => {
    const { values } = joinLargest(largestErrors(envelope), columns);
    const largest = values.reduce<number>((most, value) => Math.max(most, value ?? 0), 0);
    const label = [...name].slice(0, longestName).join('');
    return [label, sparkline(values).padEnd(columns), largest.toExponential(1)];
  });
  const { from, to, scale } = panel;
  return [
    '',
    `Sketch: largest |${quantity}|, x from ${edge(from, scale)} to ${edge(to, scale)}`,
    '',
    ...alignTextColumns(rows),
    '  Over the columns of each line █ is the number behind it.',
  ];
}

/** Sparklines of a profile's errors over the inputs, one paragraph for each plot; nothing without plots. */
export function profileSketch(profile: Profile): string {
  if (!('plots' in profile)) return '';
  return profile.plots.map((plot) => `${plotLines(plot).join('\n')}\n`).join('');
}
