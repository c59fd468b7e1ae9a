export {
  explainingFaults,
  lseShares,
  outShares,
  weightError,
  type MergeJudgement,
  type StoredMerge,
} from './judge-merge.js';
export { mergedLseFaults, mergeFaults, type MergeFault } from './merge-faults.js';
export { judgeSplits, type JudgedSplits, type SplitAudit } from './judge-splits.js';
export { mergeParts, type MergedParts, type PartialResults } from './merge-parts.js';
export { otherRules, requestedRule, type SplitRule } from './split-rules.js';
