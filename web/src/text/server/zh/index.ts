/** What the server says, in Chinese, by its stable codes and the parameters that come with them. */
export { FAULT } from './formula';
export { ENDED, HAPPENED } from './happened';
export { REFUSED } from './refused';
export { STANDS, WHY } from './stands';
export { WRONG } from './wrong';
