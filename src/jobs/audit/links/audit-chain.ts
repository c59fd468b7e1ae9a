import {
  reachChainVerdict,
  type ChainEvidence,
  type ChainLinkVerdict,
  type LinkContractName,
} from '../../../audit/index.js';
import {
  chainFile,
  linkFile,
  printable,
  type ChainFile,
  type ChainPart,
  type TensorFile,
} from '../../../io/tensors/index.js';
import {
  createChainReport,
  type AuditReport,
  type ChainCost,
  type ChainLink,
  type ChainReport,
  type LinkReport,
  type RecurrentReport,
} from '../../../report/json/index.js';
import { RequestError } from '../../../request-error.js';
import { stated } from '../../../words/index.js';
import type { AuditSettings } from '../audit-settings.js';
import type { AuditWork } from '../audit-work.js';
import { secondsSince } from '../document-head.js';
import { openProblem } from '../open-problem.js';
import { namedOutputs, readOutputs } from '../read-outputs.js';
import { chainCost, exactInputs, type ExactInputs } from './chain-cost.js';
import { checkJoints, type CheckedJoint } from './chain-joints.js';
import { cacheWriteLink, readWrite } from './read-cache-write.js';
import { prologueLink, readPrologueParts } from './read-prologue.js';

/** The contracts of the links of a chain, in the order in which they run. */
const chainContracts = [
  'prologue',
  'cache-write',
  'selection',
  'attention',
  'merge',
] as const satisfies readonly ('attention' | LinkContractName)[];

/** Judges an open file of one contract. */
export type JudgeFile = (
  work: AuditWork,
) => Promise<{ readonly report: AuditReport | LinkReport | RecurrentReport | ChainReport }>;

/**
 * The links of a file that holds several of the decode chain; null for a file of one contract, and where a contract is said.
 * @throws RequestError for a list of links that cannot be read
 */
export function chainOf(
  file: TensorFile,
  { contract, link }: Pick<AuditSettings, 'contract' | 'link'>,
): ChainFile | null {
  if (contract !== undefined || Object.hasOwn(file.metadata, 'contract')) return null;
  return chainFile(file, chainContracts, link.notes ?? {});
}

/** @throws RequestError for options that a chain does not take */
function rejectOptions({ file, settings }: AuditWork): void {
  const [option] = [
    ...settings.attentionOptions,
    ...(Object.keys(settings.link.tensors ?? {}).length > 0 ? ['--tensor'] : []),
  ];
  if (option !== undefined)
    throw new RequestError(
      `${printable(file.path)}: ${option} is of one link, and this is a chain; put it into metadata links, or give --note <link>.<name>=value`,
    );
}

/** The work of a link: its own tensors and notes, and no settings of the command line. */
function workOf(work: AuditWork, part: ChainPart): AuditWork {
  const { settings } = work;
  return {
    ...work,
    file: part.file,
    start: performance.now(),
    settings: {
      ...settings,
      contract: part.contract,
      link: {},
      linkOptions: [],
      plots: false,
    },
  };
}

/** A link as it was judged, and what the verdict on the chain needs of it. */
interface JudgedLink {
  readonly link: ChainLink;
  readonly evidence: ChainLinkVerdict;
}

function unjudgedLink({ name, contract }: ChainPart, error: string, isAbsent: boolean): JudgedLink {
  const status = isAbsent ? 'NOT JUDGED' : 'ERROR';
  return {
    link: { name, contract, status, sentence: error, report: null },
    evidence: {
      name,
      verdict: null,
      cause: null,
      isWorstCase: true,
      unjudged: error,
      isAbsent,
    },
  };
}

/** Names of tensors as they are in the dump. */
function withDumpedNames<Report extends AuditReport | LinkReport>(
  report: Report,
  part: ChainPart,
): Report {
  const outputs = report.inputs.outputs.map((one) => ({
    ...one,
    tensor: part.dumped(one.tensor),
  }));
  return { ...report, inputs: { ...report.inputs, outputs } };
}

function judgedLink(part: ChainPart, report: AuditReport | LinkReport): JudgedLink {
  const { name, contract } = part;
  const { status, sentence, diagnosis, findings } = report.verdict;
  return {
    link: { name, contract, status, sentence, report },
    evidence: {
      name,
      verdict: { status, sentence },
      cause: diagnosis,
      isWorstCase: findings[0]?.isWorstCase ?? true,
      unjudged:
        status === 'NOT JUDGED' ? sentence.slice('NOT JUDGED: '.length).replace(/\.$/, '') : null,
      isAbsent: false,
    },
  };
}

async function judgePart(work: AuditWork, part: ChainPart, judge: JudgeFile): Promise<JudgedLink> {
  if (part.file.entries.size === 0) return unjudgedLink(part, 'nothing of it is in the dump', true);
  try {
    const { report } = await judge(workOf(work, part));
    if (report.kind !== 'audit' && report.kind !== 'link-audit')
      return unjudgedLink(part, 'it is of another contract', false);
    return judgedLink(part, withDumpedNames(report, part));
  } catch (error) {
    if (!(error instanceof RequestError)) throw error;
    const path = `${printable(work.file.path)}: `;
    const said = error.message.startsWith(path) ? error.message.slice(path.length) : error.message;
    return unjudgedLink(part, said, false);
  }
}

/**
 * The verdict on an attention in parts whose parts are all right, where the merge of them is a link of its own that fails: the O that it
 * was judged by is the merge's.
 */
function withoutMergesFault(judged: readonly JudgedLink[]): readonly JudgedLink[] {
  const merge = judged.find(({ link }) => link.contract === 'merge' && link.status === 'FAIL');
  if (merge === undefined) return judged;
  return judged.map((one) => {
    const { report, contract } = one.link;
    const parts =
      report?.kind === 'audit' && contract === 'attention' ? report.splits?.parts : null;
    if (!parts?.length || !parts.every(({ status }) => status === 'PASS')) return one;
    const verdict = stated(
      'PASS',
      `every part is right; the O that was made of them is judged by ${merge.link.name}.`,
    );
    return {
      link: { ...one.link, ...verdict },
      evidence: { ...one.evidence, verdict, cause: null },
    };
  });
}

/** What the first prologue and the first write of a chain were given. */
async function exactOf(parts: readonly ChainPart[]): Promise<ExactInputs> {
  const fileOf = (contract: string) => parts.find((one) => one.contract === contract)?.file;
  const [prologue, write] = [fileOf('prologue'), fileOf('cache-write')];
  return exactInputs(
    prologue === undefined ? [] : await readPrologueParts(linkFile(prologue, prologueLink.names)),
    write === undefined ? null : await readWrite(linkFile(write, cacheWriteLink.names)),
  );
}

/** The figures of a chain, or why there are none. */
async function costOf(work: AuditWork, parts: readonly ChainPart[]): Promise<ChainCost | string> {
  const end = parts.findLast(({ contract }) => contract === 'attention');
  if (end === undefined) return 'attention is not in the dump';
  try {
    const own = workOf(work, end);
    const { problem, reading } = await openProblem(own, []);
    const { outputs } = await readOutputs(end.file, namedOutputs({}), reading);
    return outputs.out === null
      ? 'there is no O'
      : chainCost(problem, outputs.out, { end, exact: await exactOf(parts) });
  } catch (error) {
    if (!(error instanceof RequestError)) throw error;
    return error.message;
  }
}

/** What the verdict says of links that are of no chain's dump. */
function absentNote(parts: readonly ChainPart[]): string[] {
  const absent = chainContracts.filter((one) => parts.every(({ contract }) => contract !== one));
  return absent.length === 0
    ? []
    : [`not in the dump, so that nobody judged it: ${absent.join(', ')}`];
}

/**
 * Judges each link of a dumped chain by what it read, what one link handed to another, and the cost of the approximations between its
 * beginning and its end.
 * @param judge judges a file of one contract
 * @throws RequestError for options that a chain does not take
 */
export async function auditChain(
  work: AuditWork,
  { parts, unclaimed }: ChainFile,
  judge: JudgeFile,
): Promise<ChainReport> {
  rejectOptions(work);
  const { file, settings, start } = work;
  const sha256 = await work.means.hash(file.path);
  const means = { ...work.means, hash: async () => sha256 };
  const judged: JudgedLink[] = [];
  for (const part of parts) judged.push(await judgePart({ ...work, means }, part, judge));
  const links = withoutMergesFault(judged);
  const joints: readonly CheckedJoint[] = await checkJoints(parts);
  const evidence: ChainEvidence = { links: links.map((one) => one.evidence), joints };
  return createChainReport(
    {
      verdict: reachChainVerdict(evidence, absentNote(parts)),
      links: links.map(({ link }) => link),
      checks: joints.map(({ check }) => check),
      cost: await costOf(work, parts),
    },
    {
      version: settings.version,
      problem: { path: file.path, sha256 },
      unused: [...unclaimed.tensors, ...unclaimed.notes.map((key) => `metadata ${key}`)],
      seconds: secondsSince(start),
    },
  );
}
