import type { DomainReport, FunctionReport, HistogramBin } from '../error-report.js';
import { percentage } from './numbers.js';
import { alignColumns } from '../../align-columns.js';
import { terminalWidth } from './terminal-width.js';

/** More bins than this are joined by octaves. */
const mostRows = 14;

function edge(ulps: number | null): string {
  return ulps === null ? '' : String(ulps);
}

/** Joins bins that begin in the same octave. */
function byOctave(bins: readonly HistogramBin[]): HistogramBin[] {
  const octaves = new Map<number, HistogramBin>();
  for (const bin of bins) {
    const octave = bin.from === 0 ? 0 : 2 ** Math.floor(Math.log2(bin.from));
    const known = octaves.get(octave);
    octaves.set(octave, {
      from: octave,
      to: octave === 0 ? bin.to : bin.to === null ? null : 2 * octave,
      inputs: bin.inputs + (known?.inputs ?? 0),
      shareUniform: bin.shareUniform + (known?.shareUniform ?? 0),
    });
  }
  return [...octaves.values()];
}

/** The histograms of |ulp error| in the first measure, side by side; the variable uniform. */
export function histogramText({ functions }: DomainReport, variable: string): string[] {
  const all = functions.map(({ measures }: FunctionReport) => measures[0].histogram);
  const starts = (bins: readonly (readonly HistogramBin[])[]): number[] =>
    [...new Set(bins.flat().map(({ from }) => from))].sort((a, b) => a - b);
  const shown = starts(all).length > mostRows ? all.map(byOctave) : all;
  const { format } = functions[0].measures[0].rounding;
  const rows = starts(shown).map((from) => {
    const bins = shown.map((bins) => bins.find((bin) => bin.from === from));
    const to = bins.find((bin) => bin !== undefined)!.to;
    const name = to === null ? `from ${edge(from)}` : `${edge(from)} to ${edge(to)}`;
    return [name, ...bins.map((bin) => percentage(bin?.shareUniform ?? 0))];
  });
  const heading = `|ulps|, ${format}, ${variable} uniform`;
  return [
    ...alignColumns([[heading, ...functions.map(({ name }) => name)], ...rows], terminalWidth),
    '',
  ];
}
