import { linkContracts, type LinkContractName } from '../../../audit/index.js';
import {
  linkFile,
  printable,
  problemNote,
  quoted,
  type TensorFile,
} from '../../../io/tensors/index.js';
import { createLinkReport, type LinkReport } from '../../../report/json/index.js';
import { RequestError } from '../../../request-error.js';
import { nearClause } from '../../../words/index.js';
import type { AuditSettings } from '../audit-settings.js';
import type { AuditWork } from '../audit-work.js';
import { secondsSince } from '../document-head.js';
import type { LinkReader } from './link-reader.js';
import { cacheWriteLink } from './read-cache-write.js';
import { mergeLink } from './read-merge.js';
import { prologueLink } from './read-prologue.js';
import { selectionLink } from './read-selection.js';

const readers: Readonly<Record<LinkContractName, LinkReader>> = {
  prologue: prologueLink,
  selection: selectionLink,
  merge: mergeLink,
  'cache-write': cacheWriteLink,
};

/** The contracts by which files are judged: attention and linear attention, and those of the links around them. */
const auditContracts = ['attention', 'recurrent', ...linkContracts] as const;
/** One of the contracts by which files are judged. */
export type AuditContract = (typeof auditContracts)[number];

/**
 * The link of the decode chain that a file is of, by the settings, else by its metadata; null for attention and linear attention.
 * @throws RequestError for a contract that is not known
 */
export function linkContractOf(
  file: TensorFile,
  { contract, problem: { ignored = [] } }: Pick<AuditSettings, 'contract' | 'problem'>,
): LinkContractName | null {
  const noted = ignored.includes('contract') ? undefined : problemNote(file, 'contract');
  const said = contract === undefined ? noted : { text: contract, where: '--contract' };
  if (said === undefined) return null;
  const word = said.text.trim().toLowerCase().replaceAll('_', '-');
  if (!auditContracts.some((one) => one === word))
    throw new RequestError(
      `${said.where} is ${quoted(said.text)}${nearClause(word, auditContracts)}; give one of ${auditContracts.join(', ')}`,
    );
  return linkContracts.find((one) => one === word) ?? null;
}

/**
 * Judges a file of a link of the decode chain.
 * @throws RequestError for a file that cannot be judged, and for options that are of other contracts
 */
export async function auditLink(
  { file, settings, means, start }: AuditWork,
  contract: LinkContractName,
): Promise<LinkReport> {
  const { attentionOptions, link, problem, version } = settings;
  const [other] = attentionOptions;
  if (other !== undefined)
    throw new RequestError(
      `${printable(file.path)}: ${other} is of attention, and this is a ${contract}; give its tensors as --tensor name=<file>[:tensor], its settings as --note name=value`,
    );
  const reader = readers[contract];
  const opened = linkFile(file, reader.names, { ...link, ignored: problem.ignored });
  const audit = await reader.judge(opened, settings);
  return createLinkReport(audit, {
    version,
    problem: { path: file.path, sha256: await means.hash(file.path) },
    tensors: opened.sources(),
    unused: opened.unused(),
    seconds: secondsSince(start),
  });
}
