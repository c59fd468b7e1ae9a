import {
  groupPlaces,
  groupText,
  type AlgebraCertificate,
  type Certificate,
  type IdiomCertificate,
  type OutputCertificate,
} from '../../../jobs/index.js';
import { formatGrouped, formatGroupedCount, formatNumber } from '../../../words/index.js';
import { dataTable, htmlPage, verdictBanner } from '../index.js';
import { element, join, type Content, type Html } from '../../layout/index.js';
import {
  certificateTitles,
  harmlessLines,
  idiomLine,
  influenceLines,
  sameLines,
  scheduleLines,
  shortNumber,
} from '../../text/launch/index.js';
import { programListing } from './program-listing.js';
import { lineOfPlace, type ProgramTexts } from './program-texts.js';
import { sourceTable } from './source-shares.js';

/** Places that a table lists, and the least share of an error. */
const [mostPlaces, leastShare] = [40, 0.0005];

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

function algebraSection(
  algebra: readonly AlgebraCertificate[] | null,
  idioms: readonly IdiomCertificate[],
): Html {
  if (algebra === null)
    return section(
      'algebra',
      'Algebra',
      element('p', { class: 'muted' }, 'No contract says what the kernel is to compute.'),
    );
  const rows = algebra.map(({ output, holds, distance, limit, idealDistance, ...form }) => [
    output,
    shortNumber(distance),
    shortNumber(limit),
    shortNumber(idealDistance),
    formatGrouped(form.rows),
    holds ? 'holds' : { text: 'does not hold', tone: 'failure' as const },
    constantsText(form),
  ]);
  const headings = ['output', 'distance', 'limit', 'from exact', 'rows', 'contract', 'constant'];
  return section(
    'algebra',
    'Algebra',
    element(
      'p',
      {},
      'What the values would be without any rounding, against the exact value of the contract with the kernel’s own constants.',
    ),
    dataTable({
      caption: 'Real values against the contract',
      rows: [headings, ...rows],
      numberColumns: 4,
    }),
    sentences(idioms.map(idiomLine)),
  );
}

/** Sentences as paragraphs; indented ones belong to the sentence before them. */
function sentences(lines: readonly string[]): Html {
  return join(
    ...lines.map((line) =>
      element('p', { class: line.startsWith('  ') ? 'muted' : null }, line.trim()),
    ),
  );
}

/** What reaches the outputs that must not. */
function influenceSection({ influence, contract }: Certificate): Html {
  if (influence === null || influence.length === 0) return join();
  return section(
    'influence',
    'Influence',
    sentences(influence.flatMap((one) => influenceLines(one, contract))),
  );
}

/** Comparisons by expressions, where there are any. */
function bitsSection({ same, schedules }: Certificate): Html {
  if (same === null && schedules === null) return join();
  const ofSame = same === null ? [] : sameLines(same);
  const ofSchedules = schedules === null ? [] : scheduleLines(schedules);
  return section('bits', 'Bits', sentences([...ofSame, ...ofSchedules]));
}

function meaningSection(outputs: readonly OutputCertificate[]): Html {
  const standings = ['meaning', 'lost', 'decided', 'constant', 'unwritten'] as const;
  const rows = outputs.map(({ name, dtype, shape, coverage }) => [
    name,
    ...standings.map((standing) => formatGrouped(coverage[standing])),
    `${dtype} [${shape.join(', ')}]`,
  ]);
  return section(
    'meaning',
    'Meaning',
    dataTable({
      caption: 'Elements of the outputs',
      rows: [['output', ...standings, 'type'], ...rows],
      numberColumns: standings.length,
    }),
  );
}

function roundingPart({ name, rounding }: OutputCertificate, texts: ProgramTexts): Html {
  if (rounding === null) return join();
  const { worst, rms, largest, sampled, unattributed, shares } = rounding;
  // Lines of the source have a table of their own.
  const instructions = { ...texts, sources: new Map() };
  const rows = groupPlaces(shares, ({ share }) => share)
    .filter(({ amount }) => Math.abs(amount) >= leastShare)
    .slice(0, mostPlaces)
    .map((group) => [
      `${(100 * group.amount).toFixed(1)} %`,
      groupText(group),
      lineOfPlace(instructions, group.first),
    ]);
  return join(
    element('h3', {}, name),
    element(
      'p',
      {},
      `The largest |bits − real| is ${shortNumber(worst)}, the RMS ${shortNumber(rms)}, where |${name}| reaches ${shortNumber(largest)}. ` +
        `Over ${formatGroupedCount(sampled, 'element')} the parts sum to the error within ${shortNumber(unattributed)} of it.`,
    ),
    sourceTable(name, shares, texts),
    dataTable({
      caption: `What makes the error of ${name}`,
      rows: [['share', 'place', 'its first line'], ...rows],
      numberColumns: 0,
    }),
  );
}

/** What a certificate proves, in a clause. */
function proved({ outputs, algebra }: Certificate): string {
  const elements = outputs.reduce((sum, { coverage }) => sum + coverage.meaning, 0);
  const known = `${formatGroupedCount(elements, 'element')} have a meaning`;
  return algebra === null
    ? known
    : `${known}, and ${algebra.map(({ output }) => output).join(' and ')} are what the contract says, but for rounding and constants`;
}

/** Places with how many lanes did something there. */
function countedPlaces(
  caption: string,
  places: Certificate['decisions'],
  texts: ProgramTexts,
): Html {
  if (places.length === 0) return element('p', { class: 'muted' }, `${caption}: none.`);
  const rows = groupPlaces(places, ({ count }) => count)
    .slice(0, mostPlaces)
    .map((group) => [
      formatGrouped(group.amount),
      groupText(group),
      lineOfPlace(texts, group.first),
    ]);
  return dataTable({ caption, rows: [['lanes', 'place', 'line'], ...rows], numberColumns: 0 });
}

function decisionsSection({ decisions, losses }: Certificate, texts: ProgramTexts): Html {
  const caption = 'Decisions by values: the certificate holds for inputs that decide alike';
  return section(
    'decisions',
    'Decisions and losses',
    countedPlaces(caption, decisions, texts),
    countedPlaces('Values are lost', losses, texts),
  );
}

/** The launches of a chain; nothing for a launch by itself. */
function launchList({ chain }: Certificate): Html {
  if (chain === null) return join();
  const items = chain.map(({ entry, path }) => element('li', {}, `${entry} of ${path}`));
  return element('ol', {}, items);
}

/** The programs of a certificate, of a chain under the names of its launches. */
function programSection(certificate: Certificate, ptx: readonly string[]): Html {
  const { chain } = certificate;
  if (chain === null) return section('program', 'The program', programListing(certificate, ptx[0]));
  const parts = chain.map(({ entry }, i) =>
    join(
      element('h3', {}, `Launch ${i + 1}: ${entry}`),
      programListing(certificate, ptx[i], i + 1),
    ),
  );
  return section('program', 'The programs', ...parts);
}

/**
 * The certificate as one HTML page that loads nothing, with the program's lines beside their shares of the error.
 *
 * @param texts the kernel of each launch, and what is given of its source
 */
export function renderCertificatePage(certificate: Certificate, texts: ProgramTexts): string {
  const { status, reasons, launch, run, outputs, algebra, idioms } = certificate;
  const { silent, tool, created, seconds } = certificate;
  const word = certificateTitles[status];
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
        section(
          'order',
          'Memory and order',
          launchList(certificate),
          element('p', {}, run.sentence),
          sentences(harmlessLines(run)),
        ),
        meaningSection(outputs),
        algebraSection(algebra, idioms),
        section(
          'rounding',
          'Rounding',
          outputs.map((output) => roundingPart(output, texts)),
        ),
        influenceSection(certificate),
        bitsSection(certificate),
        decisionsSection(certificate, texts),
        section(
          'silent',
          'What it does not speak of',
          element(
            'ul',
            {},
            silent.map((one) => element('li', {}, one)),
          ),
        ),
        programSection(certificate, texts.ptx),
      ),
      element(
        'footer',
        {},
        `flashproof ${tool.version}, ${created}, ${formatNumber(seconds)} s, ${formatGroupedCount(certificate.followed.values, 'value')} followed.`,
      ),
    ],
  });
}
