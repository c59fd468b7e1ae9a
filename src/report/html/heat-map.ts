import type { RenderFunction } from '@observablehq/plot';
import { capitalized, formatNumber, formatShare } from '../../words/index.js';
import { type DataTable, figure } from './figure.js';
import type { Drawing } from './drawing.js';
import { cellPaths, headName, levels, worstCells } from './heat-cells.js';
import { tileQueries, type HeatMap, type HeatMaps } from './heat-map-data.js';
import { element, type Html } from '../layout/index.js';

/** Distance in pixels below which outlines would hide the cells that they outline. */
const closestOutlines = 7;
/** Maximum number of rows of a heat map's table. */
const mostTableRows = 64;

/** Sizes of a map beside others, and alone. */
const sizes = { small: [360, 330], large: [480, 440] } as const;

function outlines(length: number, pixels: number): number[] {
  let step = tileQueries;
  while ((pixels * step) / Math.max(length, 1) < closestOutlines) step *= 2;
  return Array.from({ length: Math.ceil(length / step) - 1 }, (_, i) => (i + 1) * step);
}

/** The place of the worst element of a head. */
interface MarkedElement {
  readonly query: number;
  readonly column: number;
}

/** The coloured cells of a map, in units of cells; those of the worst element's have an id. */
function cellsMark(map: HeatMap, maps: HeatMaps, isWorst: boolean): RenderFunction {
  const { rowsPerCell, columnsPerCell, rowCells, columnCells, queries, columns } = maps;
  const ends = {
    rowCells,
    columnCells,
    height: queries / rowsPerCell,
    width: columns / columnsPerCell,
  };
  return (_index, scales, _channels, _dimensions, context) => {
    const make = (name: 'g' | 'path') =>
      context!.document.createElementNS('http://www.w3.org/2000/svg', name);
    const group = make('g');
    const x = (at: number): number => Number(scales.x!(at));
    const y = (at: number): number => Number(scales.y!(at));
    const scale = [x(columnsPerCell) - x(0), y(rowsPerCell) - y(0)];
    group.setAttribute('transform', `translate(${x(0)},${y(0)}) scale(${scale.join(',')})`);
    const cells = make('g');
    cells.setAttribute('shape-rendering', 'crispEdges');
    if (isWorst) cells.setAttribute('id', worstCells);
    group.append(cells);
    cellPaths(map, ends).forEach((d, level) => {
      if (d === '') return;
      const path = make('path');
      path.setAttribute('class', `heat-${level}`);
      path.setAttribute('d', d);
      cells.append(path);
    });
    return group;
  };
}

/** Draws one map; queries go down, columns go right. */
export function drawHeatMap(
  { plot, svg }: Drawing,
  maps: HeatMaps,
  map: HeatMap,
  marked: MarkedElement | null,
): Html {
  const { queries, columns } = maps;
  const alone = map.head !== null && maps.maps.length === 1;
  const [width, height] = sizes[alone ? 'large' : 'small'];
  const name = headName(map.head, maps.heads);
  const worst = marked === null ? [] : [marked];
  const ring = (stroke: string, strokeWidth: number) =>
    plot.dot(worst, {
      x: ({ column }: MarkedElement) => column + 0.5,
      y: ({ query }: MarkedElement) => query + 0.5,
      r: 7,
      stroke,
      strokeWidth,
      fill: 'none',
    });
  const margins = { marginLeft: 48, marginRight: 12, marginTop: 24, marginBottom: 34 };
  return svg(
    {
      title: `Share of the bound that the error uses, ${name}`,
      description:
        `${queries} queries down by ${columns} columns across; the largest share is ${formatShare(map.largest)}` +
        (marked === null
          ? '.'
          : `, at query ${marked.query}, column ${marked.column}, where the ring is.`),
    },
    {
      width,
      height,
      ...margins,
      x: { domain: [0, columns], label: 'column', ticks: 5, tickFormat: String },
      y: { domain: [queries, 0], label: 'query', ticks: 6, tickFormat: String },
      marks: [
        // Maps of all heads stand beside each other, of other outputs too.
        cellsMark(map, maps, marked !== null && map.head !== null),
        // Two colours, so that a line shows on pale cells and on dark ones.
        ...[
          { stroke: 'var(--page)', strokeWidth: 2 },
          { stroke: 'var(--outline)', strokeDasharray: '5 3' },
        ].flatMap((line) => [
          plot.ruleY(outlines(queries, height - 58), line),
          plot.ruleX(outlines(columns, width - 60), line),
        ]),
        plot.frame({ stroke: 'var(--outline)' }),
        ring('var(--page)', 5),
        ring('var(--mark)', 2.5),
      ],
    },
  );
}

/** The largest share of each tile of queries, a column for each head. */
export function heatTable(maps: HeatMaps): DataTable {
  const { queries, rowsPerCell, rowCells, columnCells } = maps;
  let step = Math.max(tileQueries, rowsPerCell);
  while (queries / step > mostTableRows) step *= 2;
  const cellsPerStep = step / rowsPerCell;
  const largest = ({ shares }: HeatMap, first: number) => {
    const part = shares.subarray(
      first * columnCells,
      Math.min(first + cellsPerStep, rowCells) * columnCells,
    );
    const finite = part.filter((share) => !Number.isNaN(share));
    return finite.length === 0 ? NaN : finite.reduce((a, b) => Math.max(a, b), 0);
  };
  const rows = Array.from({ length: Math.ceil(queries / step) }, (_, i) => [
    `queries ${i * step} to ${Math.min((i + 1) * step, queries) - 1}`,
    ...maps.maps.map((map) => {
      const share = largest(map, i * cellsPerStep);
      const shown = Number.isNaN(share) ? 'nothing finite' : formatShare(share);
      return share > 1 ? { text: shown, tone: 'failure' as const } : shown;
    }),
  ]);
  return {
    caption: 'Largest share of its bound that an element uses',
    rows: [['', ...maps.maps.map(({ head }) => headName(head, maps.heads))], ...rows],
    numberColumns: maps.maps.length,
  };
}

/** The legend of the colours. */
export function heatLegend(anySpecial: boolean): Html {
  const name = (level: number, i: number) => {
    if (i === 0) return `up to ${formatNumber(100 * level)} % of the bound`;
    if (level <= 1) return `to ${formatNumber(100 * level)} %`;
    return level === Infinity
      ? 'beyond'
      : `${levels[i - 1] === 1 ? 'too much, ' : ''}to ${level} ×`;
  };
  const names = [...levels.map(name), ...(anySpecial ? ['NaN or infinite'] : [])];
  return element(
    'ul',
    { class: 'legend', 'aria-label': 'Colours of the heat map' },
    names.map((name, level) =>
      element(
        'li',
        {},
        element(
          'svg',
          { width: 16, height: 16, viewBox: '0 0 16 16', 'aria-hidden': 'true', class: 'swatch' },
          element('rect', { width: 16, height: 16, class: `heat-${level}` }),
        ),
        name,
      ),
    ),
  );
}

/** The map of one head with its text. */
export function heatFigure(
  drawing: Drawing,
  maps: HeatMaps,
  map: HeatMap,
  marked: MarkedElement | null,
): Html {
  const { rowsPerCell, columnsPerCell } = maps;
  const cell =
    rowsPerCell * columnsPerCell === 1
      ? 'Each cell is an element.'
      : `Each cell is the worst of ${rowsPerCell} × ${columnsPerCell} elements.`;
  const name = headName(map.head, maps.heads);
  return figure({
    title: capitalized(name),
    caption: `${cell} The largest share is ${formatShare(map.largest)}${marked === null ? '' : ', in the ring'}.`,
    svg: drawHeatMap(drawing, maps, map, marked),
    // A head alone has its table beside it.
    table: maps.maps.length === 1 ? null : heatTable({ ...maps, maps: [map] }),
  });
}
