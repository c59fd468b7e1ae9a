export { bytesOfBase64 } from './base64.js';
export { listed } from './listed.js';
export {
  formatApart,
  formatCertainDigits,
  formatCosine,
  formatCount,
  formatDigits,
  formatFloat32,
  formatGrouped,
  formatGroupedCount,
  formatNumber,
  formatPercentage,
  formatPowerOfTwo,
  formatQuantity,
  formatRoughly,
  formatScaled,
  formatScientific,
  formatShare,
  formatTenths,
  formatUse,
  shareUsed,
} from './numbers.js';
export { nearestName } from './nearest-name.js';
export { displayWidth, plainText } from './plain-text.js';
export {
  reasonClause,
  reasonOf,
  stated,
  type StatedVerdict,
  type VerdictStatus,
} from './verdict-status.js';
export { parseWhole } from './whole-number.js';
