export { renderAuditsPage, type PageOf } from './audits-page.js';
export type { ComparedOutput } from './comparison.js';
export type { Exp2Curve } from './exp2-curve.js';
export { renderHtml, type HtmlReport } from './html-report.js';
export { gatherPlotData, type PlotData } from './plot-data.js';
export { createUlpHistogram, type UlpHistogram } from './ulp-histogram.js';
export type { ReproduceCommand } from './provenance.js';
