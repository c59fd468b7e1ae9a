export {
  linkContracts,
  reachLinkVerdict,
  type LinkAudit,
  type LinkCheck,
  type LinkContractName,
  type LinkFinding,
  type LinkVerdict,
} from './link-audit.js';
export * from './merge/index.js';
export * from './selection/index.js';
export * from './cache-write/index.js';
export * from './chain/index.js';
export * from './prologue/index.js';
