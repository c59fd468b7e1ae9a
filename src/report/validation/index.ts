export {
  describeViolation,
  validateAuditsReport,
  validateBoundReport,
  validateCheckReport,
  validateReport,
} from './validate-report.js';
