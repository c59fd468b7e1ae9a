export { explainWrite, rowWords, type WriteCause } from './explain-write.js';
export {
  groupWords,
  isSettled,
  ruleWords,
  type FittedRule,
  type PartRules,
} from './factor-rules.js';
export type { JudgedRow, Misfit } from './judge-row.js';
export { judgeWrite, type JudgedWrite, type WrongRow } from './judge-write.js';
