export { renderAuditsPage, type PageOf } from './audits-page.js';
export type { ComparedOutput } from './comparison.js';
export type { Exp2Curve } from './exp2-curve.js';
export { renderHtml } from './html-report.js';
export type { HtmlReport } from './page-parts.js';
export { gatherPlotData, type PlotData } from './plot-data.js';
export { createUlpHistogram, type UlpHistogram } from './ulp-histogram.js';
export type { ReproduceCommand } from './provenance.js';
export { htmlPage, verdictBanner } from './page.js';
