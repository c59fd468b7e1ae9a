export {
  describeViolation,
  validateAuditsReport,
  validateBoundReport,
  validateCheckReport,
  validateFileReport,
  validateInvarianceReport,
  validateReport,
} from './validate-report.js';
