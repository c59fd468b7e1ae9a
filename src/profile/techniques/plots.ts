import type { Envelope } from '../envelope.js';
import type { ErrorSweep } from '../error-sweep.js';
import type { Panel } from './panels.js';

/** One panel of a plot with the envelopes of all functions. */
export interface Plot {
  readonly panel: Panel;
  /** What the vertical axis shows. */
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
