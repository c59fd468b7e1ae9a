import type { JudgedElements } from '../../audit/index.js';
import { createHeatMaps, type HeatMapOptions, type HeatMaps } from './heat-map-data.js';
import { createRowScatters, type RowScatter } from './row-scatter-data.js';
import { createUlpHistogram, type UlpHistogram } from './ulp-histogram.js';

/** The data from which the plots of an output are drawn: some thousand numbers, however large the output is. */
export interface PlotData {
  readonly heat: HeatMaps;
  readonly scatters: readonly RowScatter[];
  readonly ulps: UlpHistogram;
}

/** Gathers the plots' data from an audit's elements and rows (`AuditOptions.onElements`). */
export function gatherPlotData(judged: JudgedElements, options: HeatMapOptions = {}): PlotData {
  return {
    heat: createHeatMaps(judged, options),
    scatters: createRowScatters(judged),
    ulps: createUlpHistogram(judged),
  };
}
