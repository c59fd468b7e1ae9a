import { scaleLinear, scaleSymlog } from 'd3-scale';
import { valueOfOrdinal, type Envelope, type Panel, type Plot } from '../../profile/index.js';

/** Width in pixels. */
const width = 1240;
const panelHeight = 460;
const margin = { top: 56, right: 190, bottom: 56, left: 90 };
const plotWidth = width - margin.left - margin.right;
const plotHeight = panelHeight - margin.top - margin.bottom;

/** Distance below which labels run into each other. */
const labelHeight = 14;

/** Okabe and Ito's colours, which colour-blind readers can tell apart; black last. */
const colors = ['#0072b2', '#56b4e9', '#d55e00', '#e69f00', '#009e73', '#cc79a7', '#000000'];

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}

function text(x: number, y: number, content: string, attributes = ''): string {
  return `<text x="${x.toFixed(1)}" y="${y.toFixed(1)}"${attributes}>${escaped(content)}</text>`;
}

function line(x1: number, y1: number, x2: number, y2: number, stroke: string): string {
  return `<line x1="${x1.toFixed(1)}" y1="${y1.toFixed(1)}" x2="${x2.toFixed(1)}" y2="${y2.toFixed(1)}" stroke="${stroke}"/>`;
}

/** The largest magnitude of a curve; 0 for one without errors. */
function extentOf({ envelope: { least, most } }: Plot['curves'][number]): number {
  let extent = 0;
  least.forEach((low, i) => {
    if (low <= most[i]) extent = Math.max(extent, Math.abs(low), Math.abs(most[i]));
  });
  return extent;
}

interface VerticalAxis {
  readonly place: (value: number) => number;
  readonly ticks: readonly number[];
}

/**
 * A scale that is logarithmic in both signs and linear around 0, from beyond the largest error down to
 * a tenth of the extent of the curve with the smallest, with ticks at the powers of ten.
 */
function verticalAxis({ curves }: Plot): VerticalAxis {
  const extents = curves.map(extentOf).filter((extent) => extent > 0);
  const [low, high] =
    extents.length === 0 ? [-1, 0] : [Math.min(...extents), Math.max(...extents)].map(Math.log10);
  const [lowest, highest] = [Math.floor(low) - 1, Math.ceil(high)];
  const top = 10 ** highest;
  const scale = scaleSymlog()
    .constant(10 ** lowest)
    .domain([-top, top])
    .range([plotHeight, 0]);
  const exponents = Array.from({ length: highest - lowest + 1 }, (_, i) => lowest + i);
  const step = Math.ceil((exponents.length * 2 * labelHeight) / plotHeight);
  const powers = exponents.filter((exponent) => (highest - exponent) % step === 0).map(power);
  const readable = powers.filter((p) => scale(0) - scale(p) >= labelHeight);
  return { place: (value) => scale(value), ticks: [0, ...readable, ...readable.map((p) => -p)] };
}

function power(exponent: number): number {
  return Number(`1e${exponent}`);
}

interface HorizontalAxis {
  readonly place: (value: number) => number;
  readonly ticks: readonly { readonly at: number; readonly label: string }[];
}

function horizontalAxis({ scale, from, to }: Panel): HorizontalAxis {
  const isLinear = scale === 'linear';
  const [low, high] = isLinear ? [from, to] : [Math.log2(from), Math.log2(to)];
  const linear = scaleLinear().domain([low, high]).range([0, plotWidth]);
  const ticks = linear.ticks(10);
  return {
    place: (value) => linear(isLinear ? value : Math.log2(value)),
    ticks: ticks.map((tick) => ({
      at: linear(tick),
      label: isLinear ? linear.tickFormat(10)(tick) : `2^${tick}`,
    })),
  };
}

function legend(plot: Plot): string[] {
  return plot.curves.flatMap(({ name }, i) => {
    const y = 8 + 22 * i;
    const color = colors[i % colors.length];
    return [
      `<rect x="${plotWidth + 16}" y="${y}" width="18" height="10" fill="${color}"/>`,
      text(plotWidth + 40, y + 9, name),
    ];
  });
}

function panelElements(plot: Plot, index: number): string[] {
  const { panel, quantity, curves } = plot;
  const horizontal = horizontalAxis(panel);
  const vertical = verticalAxis(plot);
  const edges = panel.boundaries.map((boundary) => horizontal.place(valueOfOrdinal(boundary)));
  // Curves of larger extent lie behind those of smaller extent.
  const order = curves
    .map((curve, i) => ({ curve, color: colors[i % colors.length], extent: extentOf(curve) }))
    .sort((a, b) => b.extent - a.extent);
  return [
    `<g transform="translate(${margin.left},${index * panelHeight + margin.top})">`,
    text(0, -28, `${quantity} against ${panel.title}`, ' font-size="16"'),
    text(0, -10, 'band: smallest to largest error of all fp32 inputs of a column', ' fill="#555"'),
    ...vertical.ticks.flatMap((tick) => {
      const y = vertical.place(tick);
      const label = tick === 0 ? '0' : tick.toExponential(0).replaceAll('-', '\u2212');
      return [
        line(0, y, plotWidth, y, tick === 0 ? '#888' : '#ddd'),
        text(-8, y + 4, label, ' text-anchor="end"'),
      ];
    }),
    ...horizontal.ticks.flatMap(({ at, label }) => [
      line(at, 0, at, plotHeight, '#eee'),
      line(at, plotHeight, at, plotHeight + 5, '#444'),
      text(at, plotHeight + 20, label, ' text-anchor="middle"'),
    ]),
    ...order.flatMap(({ curve, color }) =>
      envelopePaths(curve.envelope, edges, vertical.place).map(
        (path) =>
          `<path d="${path}" fill="${color}" fill-opacity="0.45" stroke="${color}" stroke-width="0.8"/>`,
      ),
    ),
    `<rect width="${plotWidth}" height="${plotHeight}" fill="none" stroke="#444"/>`,
    text(plotWidth / 2, plotHeight + 42, panel.title, ' text-anchor="middle"'),
    ...legend(plot),
    '</g>',
  ];
}

/** The plots of a profile as an SVG document without scripts, one panel below the other. */
export function renderSvg(title: string, plots: readonly Plot[]): string {
  const height = plots.length * panelHeight;
  return [
    '<?xml version="1.0" encoding="UTF-8"?>',
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" font-family="sans-serif" font-size="13" fill="#222">`,
    `<title>${escaped(title)}</title>`,
    `<rect width="${width}" height="${height}" fill="#fff"/>`,
    ...plots.flatMap(panelElements),
    '</svg>',
    '',
  ].join('\n');
}

/** A number of pixels with one decimal. */
function at(pixels: number): string {
  return String(Number(pixels.toFixed(1)));
}

/** The outline of columns `first` to `last`: along the largest errors, back along the smallest. */
function outline(
  { least, most }: Envelope,
  [first, last]: readonly [number, number],
  edges: readonly number[],
  place: (value: number) => number,
): string {
  const steps: string[] = [`M${at(edges[first])} ${at(place(most[first]))}`];
  for (let column = first; column <= last; column++)
    steps.push(`V${at(place(most[column]))}H${at(edges[column + 1])}`);
  for (let column = last; column >= first; column--)
    steps.push(`V${at(place(least[column]))}H${at(edges[column])}`);
  return `${steps.join('')}Z`;
}

/**
 * The outlines of an envelope as SVG path data, one for each run of columns with errors.
 * @param edges beginnings of the columns and end of the last, in pixels
 * @param place place of a value, in pixels
 */
export function envelopePaths(
  envelope: Envelope,
  edges: readonly number[],
  place: (value: number) => number,
): string[] {
  const paths: string[] = [];
  const columns = envelope.least.length;
  for (let column = 0; column < columns; column++) {
    if (envelope.least[column] > envelope.most[column]) continue;
    const first = column;
    while (column + 1 < columns && envelope.least[column + 1] <= envelope.most[column + 1])
      column++;
    paths.push(outline(envelope, [first, column], edges, place));
  }
  return paths;
}
