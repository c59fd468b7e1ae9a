import {
  groupPlaces,
  groupText,
  type AlgebraCertificate,
  type Certificate,
  type OutputCertificate,
} from '../../../jobs/index.js';
import { formatGrouped, formatGroupedCount, formatNumber } from '../../../words/index.js';
import { htmlPage, verdictBanner } from '../index.js';
import { element, join, type Content, type Html } from '../../layout/index.js';
import { programListing } from './program-listing.js';

const words = {
  certified: 'CERTIFIED',
  refuted: 'REFUTED',
  incomplete: 'NOT CERTIFIED',
} as const satisfies Record<Certificate['status'], string>;

/** Places that a table lists, and the least share of an error. */
const [mostPlaces, leastShare] = [40, 0.0005];

type Cell = string | Html;

/** A table with a caption; columns whose headings are in `numbers` are right-aligned. */
function table(
  caption: string,
  headings: readonly string[],
  rows: readonly (readonly Cell[])[],
  numbers: readonly string[],
): Html {
  const isNumber = (column: number) => numbers.includes(headings[column]);
  const cell = (text: Cell, column: number): Content =>
    element(
      column === 0 ? 'th' : 'td',
      { scope: column === 0 ? 'row' : null, class: isNumber(column) ? 'number' : null },
      text,
    );
  return element(
    'div',
    { class: 'table', role: 'group', 'aria-label': caption, tabindex: 0 },
    element(
      'table',
      {},
      element('caption', {}, caption),
      element(
        'thead',
        {},
        element(
          'tr',
          {},
          headings.map((text, i) =>
            element('th', { scope: 'col', class: isNumber(i) ? 'number' : null }, text),
          ),
        ),
      ),
      element(
        'tbody',
        {},
        rows.map((row) => element('tr', {}, row.map(cell))),
      ),
    ),
  );
}

function short(value: number): string {
  return value === 0 ? '0' : value.toExponential(1).replace('e+', 'e');
}

function section(id: string, title: string, ...content: readonly Content[]): Html {
  return element('section', { id }, element('h2', {}, title), ...content);
}

/** The constants of an output, and how a gradient is made. */
function constantsText({
  constant,
  constantError,
  weights,
  delta,
}: Pick<AlgebraCertificate, 'constant' | 'constantError' | 'weights' | 'delta'>): string {
  const unknown = constantError === null ? 'these values tell none' : 'no known constant';
  return [
    constant ?? unknown,
    ...(weights === null ? [] : [`P = ${weights}`]),
    ...(delta === null ? [] : [`δ = ${delta}`]),
  ].join(', ');
}

function algebraSection(algebra: readonly AlgebraCertificate[] | null): Html {
  if (algebra === null)
    return section(
      'algebra',
      'Algebra',
      element('p', { class: 'muted' }, 'No contract says what the kernel is to compute.'),
    );
  const rows = algebra.map(
    ({ output, holds, distance, limit, idealDistance, rows: count, ...form }) => [
      output,
      holds ? 'holds' : element('strong', { class: 'failure' }, 'does not hold'),
      short(distance),
      short(limit),
      constantsText(form),
      short(idealDistance),
      formatGrouped(count),
    ],
  );
  const headings = ['output', 'contract', 'distance', 'limit', 'constant', 'from exact', 'rows'];
  return section(
    'algebra',
    'Algebra',
    element(
      'p',
      {},
      'What the values would be without any rounding, against the exact value of the contract with the kernel’s own constants.',
    ),
    table('Real values against the contract', headings, rows, [
      ...['distance', 'limit', 'from exact', 'rows'],
    ]),
  );
}

function meaningSection(outputs: readonly OutputCertificate[]): Html {
  const standings = ['meaning', 'lost', 'decided', 'constant', 'unwritten'] as const;
  const rows = outputs.map(({ name, dtype, shape, coverage }) => [
    name,
    `${dtype} [${shape.join(', ')}]`,
    ...standings.map((standing) => formatGrouped(coverage[standing])),
  ]);
  return section(
    'meaning',
    'Meaning',
    table('Elements of the outputs', ['output', 'type', ...standings], rows, standings),
  );
}

/** A bar whose length is a share of 1, with the share in words. */
function bar(share: number): Html {
  const width = Math.min(Math.abs(share), 1) * 100;
  return element(
    'svg',
    { viewBox: '0 0 100 10', width: 100, height: 10, 'aria-hidden': 'true' },
    element('rect', {
      style: `fill:var(--${share < 0 ? 'mark' : 'found'})`,
      width: width.toFixed(1),
      height: 10,
    }),
  );
}

function roundingPart({ name, rounding }: OutputCertificate): Html {
  if (rounding === null) return join();
  const { worst, rms, largest, sampled, unattributed, shares } = rounding;
  const rows = groupPlaces(shares, ({ share }) => share)
    .filter(({ amount }) => Math.abs(amount) >= leastShare)
    .slice(0, mostPlaces)
    .map((group) => [`${(100 * group.amount).toFixed(1)} %`, bar(group.amount), groupText(group)]);
  return join(
    element('h3', {}, name),
    element(
      'p',
      {},
      `The largest |bits − real| is ${short(worst)}, the RMS ${short(rms)}, where |${name}| reaches ${short(largest)}. ` +
        `Over ${formatGroupedCount(sampled, 'element')} the parts sum to the error within ${short(unattributed)} of it.`,
    ),
    table(`What makes the error of ${name}`, ['share', '', 'place'], rows, []),
  );
}

/** What a certificate proves, in a clause. */
function proved({ outputs, algebra }: Certificate): string {
  const elements = outputs.reduce((sum, { coverage }) => sum + coverage.meaning, 0);
  const known = `${formatGroupedCount(elements, 'element')} have a meaning`;
  return algebra === null
    ? known
    : `${known}, and ${algebra.map(({ output }) => output).join(' and ')} are the contract’s in real numbers`;
}

/** Places with how many lanes did something there. */
function countedPlaces(caption: string, places: Certificate['decisions']): Html {
  if (places.length === 0) return element('p', { class: 'muted' }, `${caption}: none.`);
  const rows = groupPlaces(places, ({ count }) => count)
    .slice(0, mostPlaces)
    .map((group) => [groupText(group), formatGrouped(group.amount)]);
  return table(caption, ['place', 'lanes'], rows, ['lanes']);
}

function decisionsSection({ decisions, losses }: Certificate): Html {
  const caption = 'Decisions by values: the certificate holds for inputs that decide alike';
  return section(
    'decisions',
    'Decisions and losses',
    countedPlaces(caption, decisions),
    countedPlaces('Values are lost', losses),
  );
}

/** The certificate as one HTML page that loads nothing, with the program's lines beside their shares of the error. */
export function renderCertificatePage(certificate: Certificate, ptx: string): string {
  const { status, reasons, launch, run, outputs, algebra } = certificate;
  const { silent, tool, created, seconds } = certificate;
  const word = words[status];
  const sentence = `${word}: ${reasons.length === 0 ? proved(certificate) : reasons.join('; ')}.`;
  const title = `${word}: ${launch.entry}`;
  return htmlPage({
    title,
    version: tool.version,
    body: [
      element(
        'header',
        {},
        element('h1', {}, `Certificate of ${launch.entry}, ${launch.architecture}`),
        verdictBanner(word, sentence, status === 'certified'),
      ),
      element(
        'main',
        { id: 'content' },
        section('order', 'Memory and order', element('p', {}, run.sentence)),
        meaningSection(outputs),
        algebraSection(algebra),
        section('rounding', 'Rounding', outputs.map(roundingPart)),
        decisionsSection(certificate),
        section(
          'silent',
          'What it does not speak of',
          element(
            'ul',
            {},
            silent.map((one) => element('li', {}, one)),
          ),
        ),
        section('program', 'The program', programListing(certificate, ptx)),
      ),
      element(
        'footer',
        {},
        `flashproof ${tool.version}, ${created}, ${formatNumber(seconds)} s, ${formatGroupedCount(certificate.followed.values, 'value')} followed.`,
      ),
    ],
  });
}
