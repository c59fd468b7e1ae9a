import type { Section } from '../text/index.js';
import { cellRows, isSpanning, type Cell, type TableRow } from '../layout/index.js';
import { element, type Content, type Html } from '../layout/index.js';

/** A table: its first row are headings of columns, the first cell of each other row is its heading. */
export interface DataTable {
  readonly caption: string;
  readonly rows: readonly TableRow[];
  /** Columns of numbers, from column 1 on, aligned to the right. */
  readonly numberColumns: number;
  /** Whether the caption is for readers that do not see the heading above; default false. */
  readonly hiddenCaption?: boolean;
}

/** Texts longer than this may be broken into lines. */
const longText = 40;

function textOf(cell: Cell | undefined): string {
  return cell === undefined ? '' : typeof cell === 'string' ? cell : cell.text;
}

/** A table that scrolls by itself where it is wider than the page. */
export function dataTable({ caption, rows, numberColumns, hiddenCaption }: DataTable): Html {
  const [first = [], ...body] = rows;
  const heads = isSpanning(first) ? [] : first;
  const ofCells = cellRows(rows);
  const width = Math.max(0, ...ofCells.map((row) => row.length));
  const columns = Array.from({ length: width }, (_, i) => i).filter((i) =>
    ofCells.some((row) => textOf(row[i]) !== ''),
  );
  const align = (i: number) => (i >= 1 && i <= numberColumns ? 'number' : null);
  const head = element(
    'tr',
    {},
    columns.map((i) => {
      const label = textOf(heads[i]).trim();
      return label === ''
        ? element('td', {})
        : element('th', { scope: 'col', class: align(i) }, label);
    }),
  );
  const cell = (row: readonly Cell[], i: number): Content => {
    const content = row[i];
    const failure = typeof content === 'object' && content.tone === 'failure';
    if (i === 0) return element('th', { scope: 'row' }, textOf(content).trim());
    const isLong = textOf(content).length > longText && align(i) === null;
    const classes = [align(i), failure ? 'failure' : null, isLong ? 'long' : null].filter(
      (name) => name !== null,
    );
    return element(
      'td',
      { class: classes.length === 0 ? null : classes.join(' ') },
      failure ? element('strong', {}, textOf(content)) : textOf(content),
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
