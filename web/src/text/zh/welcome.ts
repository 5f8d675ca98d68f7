import type { Translation } from '../words';
import type en from '../en/welcome';

export default {
  title: '欢迎使用 ERA',
  text: '说明作业需要什么、何时可以运行、值多少信用点。ERA 会立即给出价格和承诺的时段。',
  three: '先试三件事',
  quoteTitle: '看看价格',
  quoteText: '打开“新建作业”，改变规模或截止时间，价格随之变化。确认之前不会预订任何资源。',
  quoteDo: '打开新建作业',
  runTitle: '运行第一次训练',
  runText: '一个核、一分钟的小训练：日志、损失曲线和账单实时可见。',
  runDo: '开始训练',
  runDone: '训练已提交。',
  cliTitle: '也可以用终端',
  cliText: '这里的一切都有对应命令。在任意代码目录中：',
  later: '可随时在“账户”下再次打开本页。',
  how: '工作方式',
  howBid: '带有价值的作业是一次出价：您会得到有保证的开始时间，或附带还价的拒绝。',
  howQueue: '不带价值的作业以半价排队，填补承诺之间的空隙。',
  howFlex: '时间窗口越宽，价格越低：等待是有价值的。',
} satisfies Translation<typeof en>;
