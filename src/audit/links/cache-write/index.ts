export { auditCacheWrite } from './audit-cache-write.js';
export { explainWrite, type WriteCause } from './explain-write.js';
export { isSettled } from './factor-rules.js';
export { judgeWrite, type JudgedWrite, type WrongRow } from './judge-write.js';
