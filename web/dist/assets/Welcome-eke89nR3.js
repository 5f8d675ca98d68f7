import{$t as e,B as t,Gt as n,H as r,It as i,Jt as a,Nt as o,Pt as s,Qt as c,R as l,Ut as ee,Xt as u,Yt as d,a as f,an as p,in as m,it as h,m as te,nn as ne,ot as re,qt as g,r as ie,rn as ae,rt as oe,t as se,w as ce,zt as _}from"./index-CqiT_pf4.js";import{n as le,t as v}from"./terminal-BN7Y1uzG.js";var y=[[`path`,{d:`M12 15v5s3.03-.55 4-2c1.08-1.62 0-5 0-5`}],[`path`,{d:`M4.5 16.5c-1.5 1.26-2 5-2 5s3.74-.5 5-2c.71-.84.7-2.13-.09-2.91a2.18 2.18 0 0 0-2.91-.09`}],[`path`,{d:`M9 12a22 22 0 0 1 2-3.95A12.88 12.88 0 0 1 22 2c0 2.72-.78 7.5-6 11a22.4 22.4 0 0 1-4 2z`}],[`path`,{d:`M9 12H4s.55-3.03 2-4c1.62-1.08 5 .05 5 .05`}]],b=[[`path`,{d:`M12.586 2.586A2 2 0 0 0 11.172 2H4a2 2 0 0 0-2 2v7.172a2 2 0 0 0 .586 1.414l8.704 8.704a2.426 2.426 0 0 0 3.42 0l6.58-6.58a2.426 2.426 0 0 0 0-3.42z`}],[`circle`,{cx:`7.5`,cy:`7.5`,r:`.5`,fill:`currentColor`}]],x={title:`Welcome to ERA`,text:`Say what a job needs, when it may run and what it is worth. ERA answers at once with a price and a promised slot.`,three:`Three things to try`,quoteTitle:`See a price`,quoteText:`Open a new job, change its size or deadline, and watch the price follow. Nothing is booked until you confirm.`,quoteDo:`Open a new job`,runTitle:`Run a first training`,runText:`A small training on one core for a minute: its log, its loss curve and its bill, live.`,runDo:`Start the training`,runDone:`The training is handed in.`,cliTitle:`Use the terminal too`,cliText:`Everything here is also a command. In any folder with code:`,later:`You find this page again under Account.`,how:`How it works`,howBid:`A job with a value is a bid: you get a slot with a guaranteed start, or a refusal with counter-offers.`,howQueue:`A job without one waits in a queue for half the price, and fills the holes that promises leave.`,howFlex:`The wider your window, the less it costs: waiting is worth money.`},S={title:`欢迎使用 ERA`,text:`说明作业需要什么、何时可以运行、值多少信用点。ERA 会立即给出价格和承诺的时段。`,three:`先试三件事`,quoteTitle:`看看价格`,quoteText:`打开“新建作业”，改变规模或截止时间，价格随之变化。确认之前不会预订任何资源。`,quoteDo:`打开新建作业`,runTitle:`运行第一次训练`,runText:`一个核、一分钟的小训练：日志、损失曲线和账单实时可见。`,runDo:`开始训练`,runDone:`训练已提交。`,cliTitle:`也可以用终端`,cliText:`这里的一切都有对应命令。在任意代码目录中：`,later:`可随时在“账户”下再次打开本页。`,how:`工作方式`,howBid:`带有价值的作业是一次出价：您会得到有保证的开始时间，或附带还价的拒绝。`,howQueue:`不带价值的作业以半价排队，填补承诺之间的空隙。`,howFlex:`时间窗口越宽，价格越低：等待是有价值的。`},ue={name:`first-training`,work:{command:[`python3`,`-c`,`# Logistic regression by gradient descent on points that a seed draws: two clouds, one line
# between them. Nothing but the standard library.
import json, math, os, random

random.seed(7)
points = []
for _ in range(2000):
    label = random.random() < 0.5
    shift = 1.5 if label else -1.5
    points.append((random.gauss(shift, 1.2), random.gauss(-shift / 2, 1.2), float(label)))

w1 = w2 = bias = 0.0
steps, rate = 60, 0.5
for step in range(1, steps + 1):
    g1 = g2 = gb = loss = 0.0
    for x, y, label in points:
        p = 1 / (1 + math.exp(-(w1 * x + w2 * y + bias)))
        loss -= math.log(p if label else 1 - p)
        g1 += (p - label) * x
        g2 += (p - label) * y
        gb += p - label
    n = len(points)
    w1, w2, bias = w1 - rate * g1 / n, w2 - rate * g2 / n, bias - rate * gb / n
    print(f"era: metric loss={loss / n:.6f} step={step}", flush=True)

right = sum((w1 * x + w2 * y + bias > 0) == (label > 0.5) for x, y, label in points)
outputs = os.environ.get("ERA_OUTPUTS", "outputs")
os.makedirs(outputs, exist_ok=True)
with open(os.path.join(outputs, "model.json"), "w") as file:
    json.dump({"weights": [w1, w2], "bias": bias, "accuracy": right / len(points)}, file)
print(f"accuracy {right / len(points):.3f}")
`]},ask:{resources:{cpu:`1`,memory:`256Mi`},duration_s:60},priority:0},de=i(`<!> <h2> </h2> <ol class="grid svelte-fd3jzz"><li class="svelte-fd3jzz"><span class="mark svelte-fd3jzz"><!></span> <h3 class="svelte-fd3jzz"> </h3> <p class="quiet grow"> </p> <div><!></div></li> <li class="svelte-fd3jzz"><span class="mark svelte-fd3jzz"><!></span> <h3 class="svelte-fd3jzz"> </h3> <p class="quiet grow"> </p> <div><!></div></li> <li class="svelte-fd3jzz"><span class="mark svelte-fd3jzz"><!></span> <h3 class="svelte-fd3jzz"> </h3> <p class="quiet grow"> </p> <!></li></ol> <section class="how svelte-fd3jzz"><h2> </h2> <ul class="stack svelte-fd3jzz"><li class="svelte-fd3jzz"> </li> <li class="svelte-fd3jzz"> </li> <li class="svelte-fd3jzz"> </li></ul></section> <p class="quiet small"> </p>`,1);function C(i,C){ae(C,!0);let w=r(x,S),T=e(!1);async function fe(){c(T,!0);try{let e={"idempotency-key":re()},t=await h(oe.POST(`/api/v1/jobs`,{body:ue,params:{header:e}}));f(w.runDone),se.go(`/jobs/${t.job}`)}catch(e){ie(e)}finally{c(T,!1)}}var E=de(),D=a(E);te(D,{get title(){return w.title},get text(){return w.text}});var O=u(D,2),pe=d(O,!0),k=u(O,2),A=g(k),j=g(A),M=g(j);t(M,{get icon(){return b},size:20}),p(j);var N=u(j,2),P=d(N,!0),F=u(N,2),I=d(F,!0),L=u(F,2),R=g(L);l(R,{kind:`primary`,href:`/jobs/new`,children:(e,t)=>{m();var r=_();n(()=>o(r,w.quoteDo)),s(e,r)},$$slots:{default:!0}}),p(L),p(A);var z=u(A,2),B=g(z),me=g(B);t(me,{get icon(){return y},size:20}),p(B);var V=u(B,2),he=d(V,!0),H=u(V,2),ge=d(H,!0),U=u(H,2),_e=g(U);l(_e,{get busy(){return ee(T)},onclick:fe,get icon(){return le},children:(e,t)=>{m();var r=_();n(()=>o(r,w.runDo)),s(e,r)},$$slots:{default:!0}}),p(U),p(z);var W=u(z,2),G=g(W),ve=g(G);t(ve,{get icon(){return v},size:20}),p(G);var K=u(G,2),ye=d(K,!0),q=u(K,2),be=d(q,!0),J=u(q,2);ce(J,{text:`era run --cpu 2 --time 10m -- python train.py`}),p(W),p(k);var Y=u(k,2),X=g(Y),xe=d(X,!0),Z=u(X,2),Q=g(Z),Se=d(Q,!0),$=u(Q,2),Ce=d($,!0),we=u($,2),Te=d(we,!0);p(Z),p(Y);var Ee=u(Y,2),De=d(Ee,!0);n(()=>{o(pe,w.three),o(P,w.quoteTitle),o(I,w.quoteText),o(he,w.runTitle),o(ge,w.runText),o(ye,w.cliTitle),o(be,w.cliText),o(xe,w.how),o(Se,w.howBid),o(Ce,w.howQueue),o(Te,w.howFlex),o(De,w.later)}),s(i,E),ne()}export{C as default};