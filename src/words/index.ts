export {
  certainDigits,
  counted,
  digits,
  float32Text,
  formatApart,
  formatCosine,
  formatCount,
  formatNumber,
  formatPowerOfTwo,
  formatRoughly,
  formatShare,
  grouped,
  percentage,
  powerOfTwo,
  shareUsed,
} from './numbers.js';
export { displayWidth, plainText } from './plain-text.js';
