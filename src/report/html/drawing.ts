import type * as PlotLibrary from '@observablehq/plot';
import { escapeXml, type Html, raw } from '../layout/index.js';

const superscripts = '⁰¹²³⁴⁵⁶⁷⁸⁹';

/** An integer as an exponent in superscript. */
function superscript(exponent: number): string {
  const digits = [...String(Math.abs(exponent))].map((digit) => superscripts[Number(digit)]);
  return `${exponent < 0 ? '⁻' : ''}${digits.join('')}`;
}

/** A power of ten in its usual notation: 10⁻³; 1, 10 and 100 unchanged. */
export function decadeLabel(value: number): string {
  const exponent = Math.round(Math.log10(value));
  return exponent >= 0 && exponent <= 2 ? String(10 ** exponent) : `10${superscript(exponent)}`;
}

/** 2^exponent in ulps: 1/16, 1, 64, 2¹². */
export function octaveLabel(exponent: number): string {
  if (Math.abs(exponent) > 10) return `2${superscript(exponent)}`;
  return exponent < 0 ? `1/${2 ** -exponent}` : String(2 ** exponent);
}

/** Integer exponents from low to high, thinned out to at most `most` multiples of one step. */
function exponents(low: number, high: number, most: number): number[] {
  const step = Math.max(1, Math.ceil((high - low + 1) / most));
  const first = Math.ceil(low / step) * step;
  return Array.from({ length: Math.max(0, Math.floor((high - first) / step) + 1) }, (_, i) =>
    Number(first + i * step),
  );
}

/** Powers of ten within [low, high], at most `most`. */
export function decades(low: number, high: number, most = 6): number[] {
  // 10^k from its decimal notation: 10 ** -5 is not equal to 1e-5.
  return exponents(Math.ceil(Math.log10(low)), Math.floor(Math.log10(high)), most).map((exponent) =>
    Number(`1e${exponent}`),
  );
}

/** Integer exponents of 2 within [low, high], at most `most`. */
export function octaves(low: number, high: number, most = 7): number[] {
  return exponents(Math.ceil(low), Math.floor(high), most);
}

/** The range of positive numbers, widened to whole decades, or a substitute where there are none. */
export function decadeDomain(values: Iterable<number>): readonly [number, number] {
  let [low, high] = [Infinity, 0];
  for (const value of values)
    if (value > 0 && value < Infinity) [low, high] = [Math.min(low, value), Math.max(high, value)];
  if (high === 0) return [0.1, 1];
  // The smallest numbers of fp64 have a logarithm, but not one decade below.
  const least = Math.max(-320, Math.floor(Math.log10(low)));
  return [
    Number(`1e${least}`),
    Number(`1e${Math.min(308, Math.max(least + 1, Math.ceil(Math.log10(high))))}`),
  ];
}

/** The description of a plot for readers who do not see it. */
export interface PlotLabel {
  readonly title: string;
  readonly description: string;
}

/** The library of plots, with a document to draw into. */
export interface Drawing {
  readonly plot: typeof PlotLibrary;
  /** Draws a labelled SVG that takes its colours from the page's style sheet. */
  readonly svg: (label: PlotLabel, options: PlotLibrary.PlotOptions) => Html;
}

/**
 * Decimals that attributes of geometry keep: a tenth of a pixel is as good as sixteen digits, and much
 * shorter; the factors of a transform may be multiplied by some hundred units.
 */
const decimals: ReadonlyMap<string, number> = new Map([
  ['transform', 4],
  ...['d', 'x', 'y', 'x1', 'x2', 'y1', 'y2', 'cx', 'cy', 'r', 'width', 'height'].map(
    (name) => [name, 1] as const,
  ),
]);

const longNumber = /-?\d+\.\d{2,}(?:e[-+]?\d+)?/g;

function roundGeometry(value: string, kept: number): string {
  return value.replace(longNumber, (number) => String(Number(Number(number).toFixed(kept))));
}

/**
 * Loads the library and a document, which takes half a second: reports without plots never load
 * them. Identifiers of titles and descriptions are unique within one drawing.
 */
export async function loadDrawing(): Promise<Drawing> {
  const [plot, { parseHTML }] = await Promise.all([
    import('@observablehq/plot'),
    import('linkedom'),
  ]);
  const { document } = parseHTML('<!doctype html><html><body></body></html>');
  let drawn = 0;
  const svg = (label: PlotLabel, options: PlotLibrary.PlotOptions): Html => {
    const id = `plot-${++drawn}`;
    const figure = plot.plot({ ...options, document, className: 'plot', figure: false });
    // The page has a style sheet of its own.
    for (const style of figure.querySelectorAll('style')) style.remove();
    for (const node of figure.querySelectorAll('*'))
      for (const { name, value } of [...node.attributes]) {
        const kept = decimals.get(name);
        if (kept !== undefined) node.setAttribute(name, roundGeometry(value, kept));
      }
    // If it were enlarged, its letters would be larger than those of the page.
    figure.setAttribute(
      'style',
      `max-width:${Math.round(1.2 * Number(figure.getAttribute('width')))}px`,
    );
    figure.setAttribute('role', 'img');
    // Marks have no role to name; the title and the description speak for all of them.
    for (const mark of figure.querySelectorAll('[aria-label]')) mark.removeAttribute('aria-label');
    figure.setAttribute('aria-labelledby', `${id}-title ${id}-description`);
    const named =
      `<title id="${id}-title">${escapeXml(label.title)}</title>` +
      `<desc id="${id}-description">${escapeXml(label.description)}</desc>`;
    return raw(figure.outerHTML.replace('>', () => `>${named}`));
  };
  return { plot, svg };
}
