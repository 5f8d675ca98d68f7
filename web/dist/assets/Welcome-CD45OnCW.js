import{$ as e,$n as t,Bn as n,Cn as r,En as i,Fn as a,Gn as o,Hn as s,Kn as c,P as ee,Un as l,Vn as te,Xn as ne,Zn as u,_ as d,bn as f,er as p,i as m,jn as re,st as h,t as ie,tt as g,xn as _}from"./ui-DydSV3Ev.js";import{i as ae,n as oe,t as se}from"./client-C-9G4Q1F.js";import{n as v,t as y}from"./terminal-BN7Y1uzG.js";import{t as b}from"./index-P9kEFaXE.js";var x=[[`path`,{d:`M12 15v5s3.03-.55 4-2c1.08-1.62 0-5 0-5`}],[`path`,{d:`M4.5 16.5c-1.5 1.26-2 5-2 5s3.74-.5 5-2c.71-.84.7-2.13-.09-2.91a2.18 2.18 0 0 0-2.91-.09`}],[`path`,{d:`M9 12a22 22 0 0 1 2-3.95A12.88 12.88 0 0 1 22 2c0 2.72-.78 7.5-6 11a22.4 22.4 0 0 1-4 2z`}],[`path`,{d:`M9 12H4s.55-3.03 2-4c1.62-1.08 5 .05 5 .05`}]],S=[[`path`,{d:`M12.586 2.586A2 2 0 0 0 11.172 2H4a2 2 0 0 0-2 2v7.172a2 2 0 0 0 .586 1.414l8.704 8.704a2.426 2.426 0 0 0 3.42 0l6.58-6.58a2.426 2.426 0 0 0 0-3.42z`}],[`circle`,{cx:`7.5`,cy:`7.5`,r:`.5`,fill:`currentColor`}]],ce={title:`Welcome to ERA`,text:`Say what a job needs, when it may run and what it is worth. ERA answers at once with a price and a promised slot.`,three:`Three things to try`,quoteTitle:`See a price`,quoteText:`Open a new job, change its size or deadline, and watch the price follow. Nothing is booked until you confirm.`,quoteDo:`Open a new job`,runTitle:`Run a first training`,runText:`A small training on one core for a minute: its log, its loss curve and its bill, live.`,runDo:`Start the training`,runDone:`The training is handed in.`,cliTitle:`Use the terminal too`,cliText:`Everything here is also a command. In any folder with code:`,later:`You find this page again under Account.`,how:`How it works`,howBid:`A job with a value is a bid: you get a slot with a guaranteed start, or a refusal with counter-offers.`,howQueue:`A job without one waits in a queue for half the price, and fills the holes that promises leave.`,howFlex:`The wider your window, the less it costs: waiting is worth money.`},le={title:`欢迎使用 ERA`,text:`说明作业需要什么、何时可以运行、值多少信用点。ERA 会立即给出价格和承诺的时段。`,three:`先试三件事`,quoteTitle:`看看价格`,quoteText:`打开“新建作业”，改变规模或截止时间，价格随之变化。确认之前不会预订任何资源。`,quoteDo:`打开新建作业`,runTitle:`运行第一次训练`,runText:`一个核、一分钟的小训练：日志、损失曲线和账单实时可见。`,runDo:`开始训练`,runDone:`训练已提交。`,cliTitle:`也可以用终端`,cliText:`这里的一切都有对应命令。在任意代码目录中：`,later:`可随时在“账户”下再次打开本页。`,how:`工作方式`,howBid:`带有价值的作业是一次出价：您会得到有保证的开始时间，或附带还价的拒绝。`,howQueue:`不带价值的作业以半价排队，填补承诺之间的空隙。`,howFlex:`时间窗口越宽，价格越低：等待是有价值的。`},ue={name:`first-training`,work:{command:[`python3`,`-c`,`# Logistic regression by gradient descent on points that a seed draws: two clouds, one line
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
`]},ask:{resources:{cpu:`1`,memory:`256Mi`},duration_s:60},priority:0},de=r(`<!> <h2> </h2> <ol class="grid svelte-fd3jzz"><li class="svelte-fd3jzz"><span class="mark svelte-fd3jzz"><!></span> <h3 class="svelte-fd3jzz"> </h3> <p class="quiet grow"> </p> <div><!></div></li> <li class="svelte-fd3jzz"><span class="mark svelte-fd3jzz"><!></span> <h3 class="svelte-fd3jzz"> </h3> <p class="quiet grow"> </p> <div><!></div></li> <li class="svelte-fd3jzz"><span class="mark svelte-fd3jzz"><!></span> <h3 class="svelte-fd3jzz"> </h3> <p class="quiet grow"> </p> <!></li></ol> <section class="how svelte-fd3jzz"><h2> </h2> <ul class="stack svelte-fd3jzz"><li class="svelte-fd3jzz"> </li> <li class="svelte-fd3jzz"> </li> <li class="svelte-fd3jzz"> </li></ul></section> <p class="quiet small"> </p>`,1);function C(r,C){u(C,!0);let w=h(ce,le),T=c(!1);async function fe(){o(T,!0);try{let e={"idempotency-key":ae()},t=await oe(se.POST(`/api/v1/jobs`,{body:ue,params:{header:e}}));m(w.runDone),b.go(`/jobs/${t.job}`)}catch(e){ie(e)}finally{o(T,!1)}}var E=de(),D=te(E);d(D,{get title(){return w.title},get text(){return w.text}});var O=l(D,2),k=s(O,!0),A=l(O,2),j=n(A),M=n(j),N=n(M);g(N,{get icon(){return S},size:20}),p(M);var P=l(M,2),F=s(P,!0),I=l(P,2),L=s(I,!0),R=l(I,2),z=n(R);e(z,{kind:`primary`,href:`/jobs/new`,children:(e,n)=>{t();var r=i();a(()=>f(r,w.quoteDo)),_(e,r)},$$slots:{default:!0}}),p(R),p(j);var B=l(j,2),V=n(B),pe=n(V);g(pe,{get icon(){return x},size:20}),p(V);var H=l(V,2),me=s(H,!0),U=l(H,2),he=s(U,!0),W=l(U,2),ge=n(W);e(ge,{get busy(){return re(T)},onclick:fe,get icon(){return v},children:(e,n)=>{t();var r=i();a(()=>f(r,w.runDo)),_(e,r)},$$slots:{default:!0}}),p(W),p(B);var G=l(B,2),K=n(G),_e=n(K);g(_e,{get icon(){return y},size:20}),p(K);var q=l(K,2),ve=s(q,!0),J=l(q,2),ye=s(J,!0),be=l(J,2);ee(be,{text:`era run --cpu 2 --time 10m -- python train.py`}),p(G),p(A);var Y=l(A,2),X=n(Y),xe=s(X,!0),Z=l(X,2),Q=n(Z),Se=s(Q,!0),$=l(Q,2),Ce=s($,!0),we=l($,2),Te=s(we,!0);p(Z),p(Y);var Ee=l(Y,2),De=s(Ee,!0);a(()=>{f(k,w.three),f(F,w.quoteTitle),f(L,w.quoteText),f(me,w.runTitle),f(he,w.runText),f(ve,w.cliTitle),f(ye,w.cliText),f(xe,w.how),f(Se,w.howBid),f(Ce,w.howQueue),f(Te,w.howFlex),f(De,w.later)}),_(r,E),ne()}export{C as default};