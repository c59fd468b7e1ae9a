import type { ElementTest, ErrorProfile, JudgedSplits } from '../../../audit/index.js';
import type { KeyRange } from '../../../problem/index.js';
import { reasonClause, type StatedVerdict } from '../../../words/index.js';
import { toReported, type Reported } from '../report-number.js';

/** One part of a split problem, judged as a problem of its own. */
export interface ReportedPart extends StatedVerdict {
  /** Number of the part, from 0. */
  readonly split: number;
  /** Its keys, by sequence or batch entry. */
  readonly keys: readonly KeyRange[];
  readonly pass: boolean;
  readonly boundUsed: Reported<ElementTest['worstRatio']>;
  readonly largestError: Reported<ErrorProfile['absolute']['max']>;
  /** The part whose keys it used instead; null where it used its own, or those of none. */
  readonly holds: number | null;
}

/** The parts of a split problem and their merge. */
export interface ReportedSplits {
  /** The rule by which the keys are divided, in words. */
  readonly rule: string;
  /** The stated or assumed rule, where the parts follow another one; null otherwise. */
  readonly instead: string | null;
  readonly parts: readonly ReportedPart[];
  /** The outputs beside the exact merge of the parts; null without LSEs of the parts. */
  readonly merge: {
    readonly pass: boolean;
    /** Shares of the largest error of a merge in fp32. */
    readonly used: Reported<number>;
    readonly lseUsed: Reported<number> | null;
    /** Other merges of the parts that give this very output. */
    readonly causes: readonly string[];
  } | null;
}

/** The report of judged parts. */
export function reportedSplits({ rule, instead, parts, merge }: JudgedSplits): ReportedSplits {
  return {
    rule: rule.words,
    instead,
    parts: parts.map(({ split, audit: { verdict, outputs }, holds }) => ({
      split,
      keys: rule.ranges[split].map(({ begin, end }) => ({ begin, end })),
      pass: verdict.pass,
      status: verdict.status,
      sentence: verdict.sentence,
      ...toReported({
        boundUsed: outputs.out.elements.worstRatio,
        largestError: outputs.out.error.absolute.max,
      }),
      holds,
    })),
    merge:
      merge === null
        ? null
        : {
            pass: merge.pass,
            ...toReported({ used: merge.used, lseUsed: merge.lseUsed }),
            causes: [...merge.causes],
          },
  };
}

/** The keys of a part in words: "keys 0 to 191"; for several sequences those of the first that has any. */
export function describePartKeys({ keys }: Pick<ReportedPart, 'keys'>): string {
  const words = [
    ...new Set(keys.map(({ begin, end }) => (end > begin ? `${begin} to ${end - 1}` : 'none'))),
  ];
  if (words.length === 1) return words[0] === 'none' ? 'no keys' : `keys ${words[0]}`;
  return `keys ${words.join('; ')}`;
}

/** The numbers of a list in words: "part 3", "parts 1 and 3", "parts 0 to 4" where those are all. */
function namedParts(numbers: readonly number[], all: number): string {
  if (numbers.length === all) return all === 1 ? 'part 0' : `parts 0 to ${all - 1}`;
  if (numbers.length === 1) return `part ${numbers[0]}`;
  return `parts ${numbers.slice(0, -1).join(', ')} and ${numbers[numbers.length - 1]}`;
}

/** Remarks on the parts beside the verdict, a clause each: another rule, parts that nothing judged. */
export function splitNotes({ rule, instead, parts }: ReportedSplits): readonly string[] {
  const unjudged = parts.filter(({ status }) => status === 'NOT JUDGED');
  const [first] = unjudged;
  const numbers = unjudged.map(({ split }) => split);
  return [
    ...(instead === null
      ? []
      : [`the parts are of ${rule}, and not of ${instead}, which was said or assumed`]),
    ...(unjudged.length === 0
      ? []
      : [`not judged: ${namedParts(numbers, parts.length)}, since ${reasonClause(first)}`]),
  ];
}

/** Reasons to fail that the parts have, a clause each: their tests and statements. */
export function splitFindings(
  { parts, merge }: ReportedSplits,
  outputPasses: boolean,
): readonly { readonly test: 'split-part' | 'split-merge'; readonly statement: string }[] {
  const ofParts = parts
    .filter(({ status }) => status === 'FAIL')
    .map((part) => {
      const { split, holds } = part;
      const cause =
        holds !== null
          ? `: it holds the result of part ${holds}`
          : merge?.pass === true && !outputPasses
            ? ': it is of no part of these keys, as one of another step would be, and the output was merged from it'
            : '';
      return {
        test: 'split-part' as const,
        statement: `part ${split} of ${parts.length} (${describePartKeys(part)}) is wrong${cause}; judged alone, ${reasonClause(part)}`,
      };
    });
  if (merge === null || merge.pass) return ofParts;
  const cause = merge.causes.length === 0 ? '' : `: ${merge.causes.join(', or ')}`;
  return [
    ...ofParts,
    { test: 'split-merge', statement: `the outputs are not what the parts merge to${cause}` },
  ];
}
