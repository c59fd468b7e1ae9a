import type * as PlotLibrary from '@observablehq/plot';
import { escapeXml, raw, type Html } from '../layout/index.js';

/** What a plot says to those who do not see it. */
export interface PlotLabel {
  readonly title: string;
  readonly description: string;
}

/** The library of plots with a document to draw into. */
export interface Drawing {
  readonly plot: typeof PlotLibrary;
  /** Draws a labelled SVG that takes its colours from the page's style sheet. */
  readonly svg: (label: PlotLabel, options: PlotLibrary.PlotOptions) => Html;
}

/**
 * Decimals that attributes of geometry keep: a tenth of a pixel is as good as sixteen digits, and much
 * shorter; the factors of a transform may multiply some hundred units.
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
 * Loads the library and a document, which takes half a second: reports without plots never do.
 * Identifiers of titles and descriptions are unique within what one drawing draws.
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
    // Larger than it was drawn, its letters would be larger than those of the page.
    figure.setAttribute(
      'style',
      `max-width:${Math.round(1.2 * Number(figure.getAttribute('width')))}px`,
    );
    figure.setAttribute('role', 'img');
    figure.setAttribute('aria-labelledby', `${id}-title ${id}-description`);
    const named =
      `<title id="${id}-title">${escapeXml(label.title)}</title>` +
      `<desc id="${id}-description">${escapeXml(label.description)}</desc>`;
    return raw(figure.outerHTML.replace('>', () => `>${named}`));
  };
  return { plot, svg };
}
