import { lineOfSite, type Certificate, type CertificatePlace } from '../../../jobs/index.js';
import { element, type Html } from '../../layout/index.js';

/** Lines of the program that are shown around a line with a share or a decision. */
const context = 3;

/** The least share that is shown. */
const leastShare = 0.0005;

/** What is said of a line of the program. */
interface Marks {
  /** The largest share of an output's error, and that output. */
  share: number;
  output: string;
  decisions: number;
  losses: number;
}

/** Marks by line of a launch. */
function marksOf(
  { outputs, decisions, losses }: Certificate,
  launch: number | null,
): ReadonlyMap<number, Marks> {
  const marks = new Map<number, Marks>();
  const at = (place: CertificatePlace): Marks | null => {
    const line = lineOfSite(place.site);
    if (line === null || place.launch !== launch) return null;
    const known = marks.get(line) ?? { share: 0, output: '', decisions: 0, losses: 0 };
    marks.set(line, known);
    return known;
  };
  for (const { name, rounding } of outputs)
    for (const { share, ...place } of rounding?.shares ?? []) {
      if (Math.abs(share) < leastShare) continue;
      const mark = at(place);
      if (mark !== null && Math.abs(share) > Math.abs(mark.share))
        [mark.share, mark.output] = [share, name];
    }
  for (const { count, ...place } of decisions) {
    const mark = at(place);
    if (mark !== null) mark.decisions += count;
  }
  for (const { count, ...place } of losses) {
    const mark = at(place);
    if (mark !== null) mark.losses += count;
  }
  return marks;
}

function noteOf({ share, output, decisions, losses }: Marks): string {
  return [
    ...(share === 0 ? [] : [`${(100 * share).toFixed(1)} % of ${output}`]),
    ...(decisions === 0 ? [] : ['decides']),
    ...(losses === 0 ? [] : ['loses']),
  ].join(', ');
}

function row(line: number, text: string, mark: Marks | undefined): Html {
  const width = mark === undefined ? 0 : Math.min(Math.abs(mark.share), 1) * 100;
  return element(
    'tr',
    {},
    element('th', { scope: 'row', class: 'number' }, String(line)),
    element(
      'td',
      {},
      element(
        'svg',
        { viewBox: '0 0 100 10', width: 60, height: 10, 'aria-hidden': 'true' },
        element('rect', { style: 'fill:var(--found)', width: width.toFixed(1), height: 10 }),
      ),
    ),
    element('td', {}, mark === undefined ? '' : noteOf(mark)),
    element('td', {}, element('code', {}, text)),
  );
}

/**
 * The lines of the program that make an error, decide or lose, with some around them; … stands for others.
 *
 * @param launch the number of the program's launch in a chain; null for a launch by itself
 */
export function programListing(
  certificate: Certificate,
  ptx: string,
  launch: number | null = null,
): Html {
  const lines = ptx.split('\n');
  const marks = marksOf(certificate, launch);
  const shown = new Set<number>();
  for (const line of marks.keys())
    for (let near = line - context; near <= line + context; near++)
      if (near >= 1 && near <= lines.length) shown.add(near);
  const rows: Html[] = [];
  let last = 0;
  for (const line of [...shown].sort((a, b) => a - b)) {
    if (line !== last + 1)
      rows.push(element('tr', {}, element('td', { colspan: 4, class: 'muted' }, '…')));
    rows.push(row(line, lines[line - 1].replaceAll('\t', '  '), marks.get(line)));
    last = line;
  }
  const of = launch === null ? '' : ` of launch ${launch}`;
  const caption = `Lines of the PTX${of} that make an error, decide or lose a value`;
  return element(
    'div',
    { class: 'table', role: 'group', 'aria-label': caption, tabindex: 0 },
    element('table', {}, element('caption', {}, caption), element('tbody', {}, rows)),
  );
}
