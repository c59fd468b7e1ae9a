export { renderSvg } from './svg-plot.js';
