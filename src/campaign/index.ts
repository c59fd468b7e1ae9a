export {
  assembleAudits,
  auditRequest,
  joinAudits,
  runAuditUnits,
  type AuditRequest,
} from './audit-campaign.js';
export { assembleCheck, joinCheck } from './assemble-check.js';
export {
  requestFingerprint,
  type CampaignCommand,
  type CampaignRequest,
} from './campaign-request.js';
export {
  checkRequest,
  checkUnits,
  recurrentCheckRequest,
  type CheckRequest,
} from './check-request.js';
export {
  assembleConform,
  conformRequest,
  conformShard,
  joinConform,
  runConformUnits,
  type ConformShard,
} from './conform-campaign.js';
export { fromUnits, joinParts, type JoinedParts } from './join-parts.js';
export { openJournal, readJournal } from './journal.js';
export { partDocument, readPart, secondsOf } from './part.js';
export {
  joinProfile,
  profileRequest,
  runProfileUnits,
  type ProfileRequest,
} from './profile-campaign.js';
export { runCheckUnits, type CheckUnitOptions } from './run-check-units.js';
export { describeShard, wholeShard, type Shard } from './shard.js';
export { resolveShard, undividedNotice, type Environment } from './shard-environment.js';
export { createUnitLog, type UnitLog } from './unit-log.js';
