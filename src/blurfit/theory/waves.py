"""Waves"""
def radius_of(count, mu, p): return min(max(0.193*(count*mu/p)**(1/3),0.6),2.5)
def residual_bound_of(radius): return min(max(2.2*radius,1.5),5.0)
