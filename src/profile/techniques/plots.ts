import type { Envelope } from '../envelope.js';
import type { ErrorSweep } from '../error-sweep.js';
import { formats, nextUp } from '../../formats/index.js';
import { ordinalsOf } from '../cells.js';
import { type Ordinal, ordinalOfValue } from '../float32-order.js';

/** One panel of a plot with the envelopes of all functions. */
export interface Plot {
  readonly panel: Panel;
  /** The quantity on the vertical axis. */
  readonly quantity: string;
  readonly curves: readonly { readonly name: string; readonly envelope: Envelope }[];
}

/** The plots of a sweep, one for each panel. */
export function plotsOf(sweep: ErrorSweep, panels: readonly Panel[], quantity: string): Plot[] {
  return panels.map((panel, p) => ({
    panel,
    quantity,
    curves: sweep.plan.candidates.map((name, c) => ({ name, envelope: sweep.envelopes[c][p] })),
  }));
}

/** The horizontal axis of a plot, cut into columns. */
export interface Panel {
  readonly title: string;
  readonly scale: 'linear' | 'log2';
  readonly from: number;
  readonly to: number;
  /** The first input of every column, ascending, and the first input after the last column. */
  readonly boundaries: readonly Ordinal[];
}

/** Maximum number of columns: about the width of a plot. */
const mostColumns = 1024;

/**
 * Columns of equal width, a power of two, over an interval widened to whole columns; an interval
 * without extent becomes one fp32 spacing wide. Columns without an fp32 number are left out.
 */
export function linearPanel(title: string, from: number, end: number): Panel {
  const to = end > from ? end : nextUp(formats.fp32, Math.fround(from));
  const width = 2 ** Math.ceil(Math.log2((to - from) / mostColumns));
  const [low, high] = [Math.floor(from / width), Math.ceil(to / width)];
  const boundaries = Array.from(
    { length: high - low + 1 },
    (_, i) => ordinalsOf({ from: (low + i) * width }).first,
  );
  return {
    title,
    scale: 'linear',
    from: low * width,
    to: high * width,
    boundaries: boundaries.filter((boundary, i) => i === 0 || boundary > boundaries[i - 1]),
  };
}

/** Bit patterns per column: four columns to a binade. */
const patternsPerColumn = 2 ** 21;

/** Four columns per binade from one power of two to another, both positive. */
export function logarithmicPanel(title: string, from: number, to: number): Panel {
  const [first, end] = [ordinalOfValue(from), ordinalOfValue(to)];
  const length = Math.floor((end - first) / patternsPerColumn) + 1;
  return {
    title,
    scale: 'log2',
    from,
    to,
    boundaries: Array.from({ length }, (_, i) => first + i * patternsPerColumn),
  };
}
