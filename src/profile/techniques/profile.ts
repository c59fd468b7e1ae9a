import type { PolynomialDegree } from '../../../kernels/index.js';
import { formats, nextUp } from '../../formats/index.js';
import type { MufuArchitecture } from '../../hardware/index.js';
import { ordinalsOf, type InputRange } from '../cells.js';
import type { CornerReport } from '../corners.js';
import type { Envelope } from '../envelope.js';
import type { DomainReport } from '../error-report.js';
import type { ErrorSweep } from '../error-sweep.js';
import { ordinalOfValue, type Ordinal } from '../float32-order.js';
import type { FunctionEvidence, ReferenceReport } from '../functions.js';
import type { SweepLedger, SweepProgress } from '../sweep.js';
import type { TradeOffOptions } from '../trade-offs/trade-off-request.js';

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

/** Options of a profile. The problems are those of trade-offs, which measure whole forwards. */
export interface ProfileOptions extends TradeOffOptions {
  /** Degrees of the polynomial; default all degrees of FlashAttention-4, or 3 for a split. */
  readonly degrees?: readonly PolynomialDegree[];
  /** The inputs to sweep; default all. */
  readonly range?: InputRange;
  /**
   * The architecture that the evidence is stated for; default sm_90. Only trade-offs depend on
   * it: they run the forward of that architecture, and their default is sm_100.
   */
  readonly architecture?: MufuArchitecture;
  /** Name of a tuning entry; default all. */
  readonly tuning?: string;
  /** Worker threads; default 1, this thread. No result depends on it. */
  readonly threads?: number;
  readonly progress?: SweepProgress;
  /** Store in which the results of a sweep in several sittings are kept and looked up; default none. */
  readonly ledger?: SweepLedger;
}

/** Members that all profiles of errors have. */
export interface FunctionErrorProfile {
  readonly title: string;
  /** The inputs swept; all where an end is missing. */
  readonly range: InputRange;
  readonly functions: readonly FunctionEvidence[];
  readonly reference: ReferenceReport;
  readonly domains: readonly DomainReport[];
  readonly corners: readonly CornerReport[];
  readonly notes: readonly string[];
  readonly plots: readonly Plot[];
}
