import {
  type Cell,
  cellRows,
  type Content,
  element,
  type Html,
  isSpanning,
  type Section,
  type TableRow,
  cellText,
} from '../layout/index.js';

/** A plot with its words and the numbers behind it. */
interface Figure {
  readonly title: string;
  /** The subject of the drawing, and how to read it. */
  readonly caption: string;
  readonly svg: Html;
  /** The plot's data as a table; null where another table of the page has them. */
  readonly table: DataTable | null;
}

/** A figure; its table is folded until the reader opens it. */
export function figure({ title, caption, svg, table }: Figure): Html {
  return element(
    'figure',
    {},
    element('figcaption', {}, element('h3', {}, title), element('p', {}, caption)),
    svg,
    table === null
      ? ''
      : element('details', {}, element('summary', {}, 'As a table'), dataTable(table)),
  );
}

/** Figures beside each other where there is room. */
export function figures(...content: readonly Html[]): Html {
  return element('div', { class: 'figures' }, content);
}

/** A table: its first row contains the headings of columns, the first cell of each other row is its heading. */
export interface DataTable {
  readonly caption: string;
  readonly rows: readonly TableRow[];
  /** Number of columns of numbers, from column 1 on, aligned to the right. */
  readonly numberColumns: number;
  /** Whether the caption is for readers who do not see the heading above; default false. */
  readonly hiddenCaption?: boolean;
}

/** Length above which texts may be broken into lines. */
const longText = 40;

/** A table that scrolls by itself where it is wider than the page. */
export function dataTable({ caption, rows, numberColumns, hiddenCaption }: DataTable): Html {
  const [first = [], ...body] = rows;
  const heads = isSpanning(first) ? [] : first;
  const ofCells = cellRows(rows);
  const width = Math.max(0, ...ofCells.map((row) => row.length));
  const columns = Array.from({ length: width }, (_, i) => i).filter((i) =>
    ofCells.some((row) => cellText(row[i]) !== ''),
  );
  const align = (i: number) => (i >= 1 && i <= numberColumns ? 'number' : null);
  const head = element(
    'tr',
    {},
    columns.map((i) => {
      const label = cellText(heads[i]).trim();
      return label === ''
        ? element('td', {})
        : element('th', { scope: 'col', class: align(i) }, label);
    }),
  );
  const cell = (row: readonly Cell[], i: number): Content => {
    const content = row[i];
    const failure = typeof content === 'object' && content.tone === 'failure';
    if (i === 0) return element('th', { scope: 'row' }, cellText(content).trim());
    const isLong = cellText(content).length > longText && align(i) === null;
    const classes = [align(i), failure ? 'failure' : null, isLong ? 'long' : null].filter(
      (name) => name !== null,
    );
    return element(
      'td',
      { class: classes.length === 0 ? null : classes.join(' ') },
      failure ? element('strong', {}, cellText(content)) : cellText(content),
    );
  };
  return element(
    'div',
    { class: 'table', role: 'group', 'aria-label': caption, tabindex: 0 },
    element(
      'table',
      {},
      element('caption', { class: hiddenCaption === true ? 'hidden' : null }, caption),
      element('thead', {}, head),
      element(
        'tbody',
        {},
        body.map((row) =>
          element(
            'tr',
            {},
            isSpanning(row)
              ? element('th', { scope: 'row', colspan: columns.length, class: 'gloss' }, row.span)
              : columns.map((i) => cell(row, i)),
          ),
        ),
      ),
    ),
  );
}

/** A table of the terminal's report, its heading as the caption. */
export function sectionTable(caption: string, { rows, numberColumns }: Section): Html {
  const [first = [], ...body] = rows;
  const heads = isSpanning(first) ? [] : first;
  return dataTable({ caption, rows: [['', ...heads.slice(1)], ...body], numberColumns });
}

/** Numbers with their names, side by side. */
export function definitions(
  name: string,
  entries: readonly (readonly [name: string, value: Content])[],
): Html {
  return element(
    'dl',
    { class: name },
    entries.map(([term, value]) =>
      element('div', {}, element('dt', {}, term), element('dd', {}, value)),
    ),
  );
}
