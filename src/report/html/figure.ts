import { dataTable, type DataTable } from './data-table.js';
import { element, type Html } from '../layout/index.js';

/** A plot with its words and the numbers behind it. */
export interface Figure {
  readonly title: string;
  /** What is drawn and how to read it. */
  readonly caption: string;
  readonly svg: Html;
  /** The same as a table; null where another table of the page has it. */
  readonly table: DataTable | null;
}

/** A figure; its table is folded away until it is asked for. */
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
